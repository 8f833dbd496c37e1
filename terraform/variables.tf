variable "project_id" {
  description = "The Google Cloud project that Ebbflow lives in, and has to itself: names of topics and services are fixed."
  type        = string

  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{4,28}[a-z0-9]$", var.project_id))
    error_message = "A project's id has 6 to 30 lower-case letters, digits and hyphens, and begins with a letter."
  }
}

variable "region" {
  description = "Where everything runs. Cloud Run, Cloud SQL and Cloud Scheduler must all be there."
  type        = string
  default     = "us-central1"

  validation {
    condition     = can(regex("^[a-z]+-[a-z]+[0-9]+$", var.region))
    error_message = "A region is named like us-central1 or europe-west3, without a zone."
  }
}

variable "image" {
  description = "The image that every function and the migration begin with. Later ones are deployed by cloudbuild.yaml, and terraform leaves them alone."
  type        = string

  validation {
    condition     = can(regex("^[a-z0-9.-]+/.+[:@].+$", var.image))
    error_message = "Name the image with its registry and a tag or digest, like us-central1-docker.pkg.dev/my-project/ebbflow/ebbflow:1a2b3c4."
  }
}

variable "worker_image" {
  description = "The image that queues begin with: the one with bash and python. Without it, `image`, whose workers have neither."
  type        = string
  default     = null

  validation {
    condition     = var.worker_image == null || can(regex("^[a-z0-9.-]+/.+[:@].+$", var.worker_image))
    error_message = "Name the image with its registry and a tag or digest."
  }
}

variable "functions" {
  description = "How large each function is. The default costs nothing while nothing runs."
  type = map(object({
    min_instances = optional(number, 0)
    max_instances = optional(number, 1)
    concurrency   = optional(number, 80)
    cpu           = optional(string, "1")
    memory        = optional(string, "512Mi")
    connections   = optional(number, 3)
  }))
  default = { trigger = {}, evaluate = {}, sweep = {}, console = {} }

  validation {
    condition     = toset(keys(var.functions)) == toset(["trigger", "evaluate", "sweep", "console"])
    error_message = "Size trigger, evaluate, sweep and console, all four; `{}` is the smallest. The sizes of execute are those of its queues."
  }
  validation {
    condition     = alltrue([for size in values(var.functions) : size.min_instances <= size.max_instances && size.max_instances >= 1])
    error_message = "A function has at least one instance at most, and not more at least than at most."
  }
  validation {
    condition     = alltrue([for size in values(var.functions) : size.concurrency >= 1 && size.concurrency <= 1000 && contains(["1", "2", "4", "6", "8"], size.cpu)])
    error_message = "concurrency is from 1 to 1000, and cpu one of 1, 2, 4, 6, 8."
  }
  validation {
    condition     = alltrue([for size in values(var.functions) : size.connections >= 2 && size.connections <= 100])
    error_message = "An instance opens from 2 to 100 connections."
  }
}

variable "queues" {
  description = "The lanes of execution that workflows may name. Each has a topic, a subscription and an execute service of its own. Callbacks need `light`."
  type = map(object({
    min_instances   = optional(number, 0)
    max_instances   = optional(number, 1)
    concurrency     = optional(number, 10)
    cpu             = optional(string, "1")
    memory          = optional(string, "512Mi")
    connections     = optional(number, 3)
    timeout_seconds = optional(number, 600)
  }))
  default = { light = {}, heavy = { concurrency = 1, memory = "2Gi" } }

  validation {
    condition     = alltrue([for queue in keys(var.queues) : can(regex("^[a-z0-9]([a-z0-9-]{0,12}[a-z0-9])?$", queue))])
    error_message = "A queue is named with at most 14 lower-case letters, digits and hyphens."
  }
  validation {
    condition     = contains(keys(var.queues), "light")
    error_message = "There must be a queue named light: callbacks are carried out there."
  }
  validation {
    condition     = alltrue([for size in values(var.queues) : size.timeout_seconds >= 10 && size.timeout_seconds <= 600])
    error_message = "timeout_seconds is from 10 to 600: Pub/Sub waits no longer for an answer."
  }
  validation {
    condition     = alltrue([for size in values(var.queues) : size.min_instances <= size.max_instances && size.max_instances >= 1])
    error_message = "A queue has at least one instance at most, and not more at least than at most."
  }
  validation {
    condition     = alltrue([for size in values(var.queues) : size.concurrency >= 1 && size.concurrency <= 1000 && contains(["1", "2", "4", "6", "8"], size.cpu)])
    error_message = "concurrency is from 1 to 1000, and cpu one of 1, 2, 4, 6, 8."
  }
  validation {
    condition     = alltrue([for size in values(var.queues) : size.connections >= 2 && size.connections <= 100])
    error_message = "An instance opens from 2 to 100 connections."
  }
}

variable "database" {
  description = "The Postgres that holds all state: its machine, whether a second one stands by in another zone, its first size in GB, the most connections it takes, how many daily backups are kept, and whether functions log in as their own accounts, by IAM, instead of with a password."
  type = object({
    tier              = optional(string, "db-g1-small")
    high_availability = optional(bool, false)
    disk_gb           = optional(number, 10)
    max_connections   = optional(number, 50)
    backups           = optional(number, 7)
    password_version  = optional(number, 1)
    iam_login         = optional(bool, false)
  })
  default = {}

  validation {
    condition     = can(regex("^db-(f1-micro|g1-small|custom-[0-9]+-[0-9]+)$", var.database.tier))
    error_message = "tier is db-f1-micro, db-g1-small or db-custom-CPUS-MEGABYTES: other machines belong to another edition."
  }
  validation {
    condition     = var.database.disk_gb >= 10
    error_message = "The disk has at least 10 GB."
  }
  validation {
    condition     = var.database.backups >= 7
    error_message = "At least 7 backups are kept, so that every moment of the last 7 days can be gone back to."
  }
}

variable "database_people" {
  description = "People and groups who may log in to the database as themselves, without a password: addresses, where one of a group begins with `group:`."
  type        = set(string)
  default     = []

  validation {
    condition     = alltrue([for person in var.database_people : can(regex("^(group:)?[^@:]+@[^@]+$", person))])
    error_message = "Write ada@example.com, or group:operators@example.com."
  }
}

variable "subnet_range" {
  description = "The addresses from which functions reach the database: /26 or larger, used by nothing else."
  type        = string
  default     = "10.8.0.0/24"

  validation {
    condition     = can(cidrhost(var.subnet_range, 0)) && try(tonumber(split("/", var.subnet_range)[1]) <= 26, false)
    error_message = "Write a range of at least 64 addresses, like 10.8.0.0/24."
  }
}

variable "api" {
  description = "Who may use the API and the pages: addresses and `@domains`, with tokens for this audience, by default of Google. Without it neither is served, and nothing can be reached from outside."
  type = object({
    accounts = list(string)
    audience = optional(string, "ebbflow-api")
    issuer   = optional(string)
    keys_url = optional(string)
  })
  default = null

  validation {
    condition     = var.api == null || try(length(var.api.accounts) > 0 && alltrue([for account in var.api.accounts : can(regex("^[^@,]*@[^@,]+$", account))]), false)
    error_message = "accounts holds at least one address like ada@example.com or domain like @example.com."
  }
  validation {
    condition     = var.api == null || (try(var.api.issuer, null) == null) == (try(var.api.keys_url, null) == null)
    error_message = "An issuer other than Google needs both issuer and keys_url."
  }
}

variable "sign_in" {
  description = "How people sign in to the console with a browser: the id of a client at the issuer that `api` believes, which sends them back to `/sign-in/callback` of the console, and the names of two secrets of this project's Secret Manager: the client's secret, and at least 32 random characters that sessions are sealed with. They must be there, with a version, before this is applied; their values never pass through terraform. An issuer other than Google needs its two addresses. Without it the pages want a token."
  type = object({
    client_id     = string
    client_secret = string
    session_key   = string
    authorize_url = optional(string)
    token_url     = optional(string)
  })
  default = null

  validation {
    condition     = var.sign_in == null || var.api != null
    error_message = "Nobody can sign in where there is no api."
  }
  validation {
    condition     = var.sign_in == null || (try(var.sign_in.authorize_url, null) == null) == (try(var.sign_in.token_url, null) == null)
    error_message = "An issuer other than Google needs both authorize_url and token_url."
  }
  validation {
    condition     = var.sign_in == null || try(var.sign_in.client_secret != var.sign_in.session_key, false)
    error_message = "client_secret and session_key are names of two secrets."
  }
}

variable "outgoing" {
  description = "Where requests of workflows may go: nowhere but to `only`, if any are named, and to what is within (loopback, private addresses) only where `allow` names it. Names, `*.domains`, addresses and ranges; never to metadata servers."
  type = object({
    only  = optional(list(string), [])
    allow = optional(list(string), [])
  })
  default = {}

  validation {
    condition     = alltrue([for entry in concat(var.outgoing.only, var.outgoing.allow) : can(regex("^[A-Za-z0-9*._:/-]+$", entry))])
    error_message = "Write names like api.example.com or *.example.com, addresses, or ranges like 10.0.0.0/8."
  }
}

variable "console_url" {
  description = "Where people find the console, if not at its address on run.app."
  type        = string
  default     = null

  validation {
    condition     = var.console_url == null || can(regex("^https://[^/]+$", var.console_url))
    error_message = "Write an address that begins with https:// and has no path."
  }
}

variable "workflow_secrets" {
  description = "Secrets of this project's Secret Manager that workflows may name as `secrets.NAME`. They must be there, with a version, before this is applied; their values never pass through terraform."
  type        = set(string)
  default     = []

  validation {
    condition     = alltrue([for name in var.workflow_secrets : can(regex("^[a-z][a-z0-9_-]*$", name))])
    error_message = "A secret is named with lower-case letters, digits, hyphens and underscores."
  }
}

variable "notice_topics" {
  description = "Topics of your own, by id and in this project, that callbacks of workflows publish to."
  type        = set(string)
  default     = []

  validation {
    condition     = alltrue([for topic in var.notice_topics : can(regex("^[A-Za-z][A-Za-z0-9._~+%-]{2,254}$", topic))])
    error_message = "Write a topic's id, without projects/…/topics/."
  }
}

variable "event_topics" {
  description = "Topics of your own, by id and in this project, whose messages are events that triggers of workflows may name."
  type        = set(string)
  default     = []

  validation {
    condition     = alltrue([for topic in var.event_topics : can(regex("^[A-Za-z][A-Za-z0-9._~+%-]{2,200}$", topic)) && !startswith(topic, "ebbflow-")])
    error_message = "Write a topic's id, without projects/…/topics/; Ebbflow's own are subscribed to already."
  }
}

variable "archive" {
  description = "Whether everything of a run is written to a bucket before it is deleted: the bucket's name (by default the project's id and `-ebbflow-archive`), its storage class, and after how many days it is deleted there (by default never)."
  type = object({
    bucket        = optional(string)
    storage_class = optional(string, "COLDLINE")
    keep_days     = optional(number)
  })
  default = null

  validation {
    condition     = var.archive == null || try(coalesce(var.archive.keep_days, 1) >= 1, false)
    error_message = "keep_days is at least 1; leave it out to keep everything."
  }
}

variable "otlp_endpoint" {
  description = "An OpenTelemetry collector that is sent metrics and spans: OTLP over HTTP, as JSON. Without it there are metrics from logs only, and no spans."
  type        = string
  default     = null

  validation {
    condition     = var.otlp_endpoint == null || can(regex("^https?://[^/]+", var.otlp_endpoint))
    error_message = "Write an address that begins with https:// or http://, without /v1/traces."
  }
}

variable "retention_days" {
  description = "How long what has ended is kept, in days."
  type = object({
    succeeded    = optional(number, 90)
    failed       = optional(number, 365)
    logs         = optional(number, 30)
    outputs      = optional(number, 7)
    audit        = optional(number, 400)
    dead_letters = optional(number, 365)
  })
  default = {}

  validation {
    condition     = alltrue([for days in values(var.retention_days) : days >= 1 && days <= 36500])
    error_message = "Each is from 1 to 36500 days."
  }
}

variable "log_filter" {
  description = "What the functions log, as RUST_LOG: a level, or levels by module."
  type        = string
  default     = "info"
}

variable "alert_emails" {
  description = "Who is told when an alert goes off. Without anybody, alerts are shown in the console of Cloud Monitoring only."
  type        = set(string)
  default     = []

  validation {
    condition     = alltrue([for email in var.alert_emails : can(regex("^[^@]+@[^@]+$", email))])
    error_message = "Write addresses like ada@example.com."
  }
}

variable "runbook_url" {
  description = "Where docs/src/operations/runbook.md is published, for the links in alerts. Without it, alerts name the chapter only."
  type        = string
  default     = null

  validation {
    condition     = var.runbook_url == null || can(regex("^https://", var.runbook_url))
    error_message = "Write an address that begins with https://."
  }
}

variable "deletion_protection" {
  description = "Whether terraform refuses to destroy the database and the services."
  type        = bool
  default     = true
}
