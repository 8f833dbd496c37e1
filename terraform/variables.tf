variable "project_id" {
  description = "The Google Cloud project for Ebbflow."
  type        = string

  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{4,28}[a-z0-9]$", var.project_id))
    error_message = "A project id has 6 to 30 lower-case letters, digits and hyphens, and starts with a letter."
  }
}

variable "name" {
  description = "The name of this installation, which all its resources begin with. Several can share a project."
  type        = string
  default     = "ebbflow"

  validation {
    condition     = can(regex("^[a-z]([a-z0-9-]{1,10}[a-z0-9])$", var.name))
    error_message = "A name has 3 to 12 lower-case letters, digits and hyphens, and starts with a letter."
  }
}

variable "region" {
  description = "The region for everything. It must offer Cloud Run, Cloud SQL and Cloud Scheduler."
  type        = string
  default     = "us-central1"

  validation {
    condition     = can(regex("^[a-z]+-[a-z]+[0-9]+$", var.region))
    error_message = "A region is named like us-central1 or europe-west3, without a zone."
  }
}

variable "image" {
  description = "The first image of every function and the migration. cloudbuild.yaml deploys later ones, which terraform leaves in place."
  type        = string

  validation {
    condition     = can(regex("^[a-z0-9.-]+/.+[:@].+$", var.image))
    error_message = "Name the image with its registry and a tag or digest, like us-central1-docker.pkg.dev/my-project/ebbflow/ebbflow:1a2b3c4."
  }
}

variable "worker_image" {
  description = "The first image of everything that runs tasks, execute services and worker pools, with bash and python. Execute services use these only with `user_code`. The default is `image`, which has neither."
  type        = string
  default     = null

  validation {
    condition     = var.worker_image == null || can(regex("^[a-z0-9.-]+/.+[:@].+$", var.worker_image))
    error_message = "Name the image with its registry and a tag or digest."
  }
}

variable "functions" {
  description = "The size of each function. The default costs nothing while idle."
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
    error_message = "Give a size to each of trigger, evaluate, sweep and console; `{}` is the smallest. The size of execute is set per queue."
  }
  validation {
    condition     = alltrue([for size in values(var.functions) : size.min_instances <= size.max_instances && size.max_instances >= 1])
    error_message = "max_instances must be at least 1 and at least min_instances."
  }
  validation {
    condition     = alltrue([for size in values(var.functions) : size.concurrency >= 1 && size.concurrency <= 1000 && contains(["1", "2", "4", "6", "8"], size.cpu)])
    error_message = "concurrency must be between 1 and 1000, and cpu one of 1, 2, 4, 6, 8."
  }
  validation {
    condition     = alltrue([for size in values(var.functions) : size.connections >= 2 && size.connections <= 100])
    error_message = "connections must be between 2 and 100."
  }
}

variable "user_code" {
  description = "Whether execute services run code of users: `bash` and `python` tasks. Without it these fail at once in queues of kind `service` and need a worker, which has no access to the database. With it, such a task can act as the service's account, which reaches the database of all tenants and publishes to every topic: commands of its own, too. Allow it only if you trust everyone who may register workflows with everything that Ebbflow can reach."
  type        = bool
  default     = false
}

variable "queues" {
  description = "The queues that workflows may name. One of kind `service` has its own topic, subscription and execute service, for attempts of ten minutes at most; callbacks need `light`. One of kind `pool` has a worker pool instead: `max_instances` machines that are always up, each with `slots` tasks at a time and as long as they like, which lease tasks with the token in the secret `token_secret` (role `worker`; it must exist, with a version, before this is applied) and offer `labels`. `task_network` is what the programs of a pool's tasks may reach at most: `shared`, whatever the pool reaches, the metadata server and so its account included, or `none`."
  type = map(object({
    kind            = optional(string, "service")
    slots           = optional(number, 4)
    labels          = optional(map(string), {})
    token_secret    = optional(string)
    task_network    = optional(string, "shared")
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
    error_message = "A queue name has at most 14 lower-case letters, digits and hyphens."
  }
  validation {
    condition     = alltrue([for queue in keys(var.queues) : length("${var.name}-execute-${queue}") <= 30])
    error_message = "The account of a queue's service is called NAME-execute-QUEUE, and may have 30 characters: shorten `name` or the queue's name."
  }
  validation {
    condition     = try(var.queues.light.kind == "service", false)
    error_message = "There must be a queue named light of kind service, which runs callbacks."
  }
  validation {
    condition     = alltrue([for size in values(var.queues) : contains(["service", "pool"], size.kind)])
    error_message = "The kind of a queue is service or pool."
  }
  validation {
    condition     = alltrue([for size in values(var.queues) : size.kind != "pool" || (size.token_secret != null && size.slots >= 1 && size.slots <= 1000)])
    error_message = "A pool needs token_secret, and between 1 and 1000 slots."
  }
  validation {
    condition     = alltrue([for size in values(var.queues) : contains(["shared", "none"], size.task_network)])
    error_message = "The task_network of a pool is shared or none."
  }
  validation {
    condition     = var.api != null || alltrue([for size in values(var.queues) : size.kind != "pool"])
    error_message = "A pool leases tasks over the API: set `api`."
  }
  validation {
    condition     = alltrue([for size in values(var.queues) : size.timeout_seconds >= 30 && size.timeout_seconds <= 600])
    error_message = "timeout_seconds must be between 30, of which half is left for the attempt, and 600, the longest that Pub/Sub waits for a response."
  }
  validation {
    condition     = alltrue([for size in values(var.queues) : size.min_instances <= size.max_instances && size.max_instances >= 1])
    error_message = "max_instances must be at least 1 and at least min_instances."
  }
  validation {
    condition     = alltrue([for size in values(var.queues) : size.concurrency >= 1 && size.concurrency <= 1000 && contains(["1", "2", "4", "6", "8"], size.cpu)])
    error_message = "concurrency must be between 1 and 1000, and cpu one of 1, 2, 4, 6, 8."
  }
  validation {
    condition     = alltrue([for size in values(var.queues) : size.connections >= 2 && size.connections <= 100])
    error_message = "connections must be between 2 and 100."
  }
}

variable "database" {
  description = "The Postgres instance that holds all state: machine tier, standby in another zone, initial disk size in GB, maximum connections, number of daily backups to keep, and whether functions log in with their own accounts through IAM instead of a password. `instance` names the instance if it is not called like the installation, as after a restore."
  type = object({
    tier              = optional(string, "db-g1-small")
    version           = optional(number, 15)
    instance          = optional(string)
    high_availability = optional(bool, false)
    disk_gb           = optional(number, 10)
    disk_limit_gb     = optional(number, 0)
    max_connections   = optional(number, 50)
    backups           = optional(number, 7)
    password_version  = optional(number, 1)
    iam_login         = optional(bool, false)
  })
  default = {}

  validation {
    condition     = can(regex("^db-(f1-micro|g1-small|custom-[0-9]+-[0-9]+)$", var.database.tier))
    error_message = "tier must be db-f1-micro, db-g1-small or db-custom-CPUS-MEGABYTES; other machines need another edition."
  }
  validation {
    condition     = contains([15, 16, 17, 18], var.database.version)
    error_message = "version must be between 15 and 18."
  }
  validation {
    condition     = var.database.tier != "db-f1-micro" || var.database.max_connections > 25
    error_message = "db-f1-micro allows 25 connections unless you raise max_connections, and the smallest installation needs more."
  }
  validation {
    condition     = !var.database.iam_login || alltrue([for name in concat(keys(var.functions), [for queue, size in var.queues : "execute-${queue}" if size.kind == "service"]) : length("${var.name}-${name}@${var.project_id}.iam") <= 63])
    error_message = "With iam_login, functions log in as NAME-execute-QUEUE@PROJECT.iam or NAME-FUNCTION@PROJECT.iam, and Postgres allows 63 characters: shorten `name` or the name of a queue, or log in with a password."
  }
  validation {
    condition     = var.database.disk_gb >= 10
    error_message = "disk_gb must be at least 10."
  }
  validation {
    condition     = var.database.backups >= 7
    error_message = "backups must be at least 7, to allow point-in-time recovery for 7 days."
  }
}

variable "database_hours" {
  description = "When to start and stop the database, in the syntax of cron, and in which time zone: a stopped database costs only its disk. Starting takes minutes. Nothing runs meanwhile, and no uptime check probes the API at any time. Messages of `event_topics` are delivered for about a quarter of an hour and then become dead letters, which wait to be replayed when the database is back."
  type = object({
    start     = string
    stop      = string
    time_zone = optional(string, "Etc/UTC")
  })
  default = null

  validation {
    condition     = var.database_hours == null || alltrue([for size in concat(values(var.functions), values(var.queues)) : size.min_instances == 0])
    error_message = "An instance that is always up would wait for a stopped database, and cost more than database_hours saves: set no min_instances."
  }
  validation {
    condition     = var.database_hours == null || try(alltrue([for cron in [var.database_hours.start, var.database_hours.stop] : length(split(" ", cron)) == 5]), false)
    error_message = "Use five fields, like `0 7 * * 1-5`."
  }
}

variable "wake" {
  description = "What wakes the sweep: `tick` calls it every minute; `tasks` has Cloud Tasks call it when something is due, and once an hour besides, so that an idle installation does not query its database."
  type        = string
  default     = "tick"

  validation {
    condition     = contains(["tick", "tasks"], var.wake)
    error_message = "wake must be tick or tasks."
  }
}

variable "database_people" {
  description = "People and groups who may log in to the database with their own identity, without a password: email addresses, with `group:` before those of groups."
  type        = set(string)
  default     = []

  validation {
    condition     = alltrue([for person in var.database_people : can(regex("^(group:)?[^@:]+@[^@]+$", person))])
    error_message = "Use the form ada@example.com or group:operators@example.com."
  }
}

variable "subnet_range" {
  description = "The address range from which functions reach the database: /26 or larger, used by nothing else."
  type        = string
  default     = "10.8.0.0/24"

  validation {
    condition     = can(cidrhost(var.subnet_range, 0)) && try(tonumber(split("/", var.subnet_range)[1]) <= 26, false)
    error_message = "Use a range of at least 64 addresses, like 10.8.0.0/24."
  }
}

variable "api" {
  description = "Who may use the API and the console: email addresses and `@domains`, with tokens for this audience (default: the installation's name and `-api`), issued by Google by default. Without it neither is served, and nothing is reachable from outside."
  type = object({
    accounts = list(string)
    audience = optional(string)
    issuer   = optional(string)
    keys_url = optional(string)
  })
  default = null

  validation {
    condition     = var.api == null || try(length(var.api.accounts) > 0 && alltrue([for account in var.api.accounts : can(regex("^[^@,]*@[^@,]+$", account))]), false)
    error_message = "accounts needs at least one address like ada@example.com or domain like @example.com."
  }
  validation {
    condition     = var.api == null || (try(var.api.issuer, null) == null) == (try(var.api.keys_url, null) == null)
    error_message = "An issuer other than Google needs both issuer and keys_url."
  }
}

variable "iap" {
  description = "Whether Identity-Aware Proxy signs people in to the console: those of `api.accounts`. It needs no OAuth client, if the project belongs to an organization. The API and webhooks are not behind it."
  type        = bool
  default     = false

  validation {
    condition     = !var.iap || var.api != null
    error_message = "iap requires api."
  }
  validation {
    condition     = !var.iap || var.sign_in == null
    error_message = "People sign in through iap or through sign_in, not both."
  }
}

variable "sign_in" {
  description = "How people sign in to the console with a browser: the id of an OAuth client at the issuer that `api` trusts, with the console's `/sign-in/callback` as its redirect address, and the names of two secrets in this project's Secret Manager: the client's secret, and at least 32 random characters that seal sessions. Both must exist, with a version, before this is applied; their values never pass through terraform. An issuer other than Google needs its two addresses. Without it the console asks for a token."
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
    error_message = "sign_in requires api."
  }
  validation {
    condition     = var.sign_in == null || (try(var.sign_in.authorize_url, null) == null) == (try(var.sign_in.token_url, null) == null)
    error_message = "An issuer other than Google needs both authorize_url and token_url."
  }
  validation {
    condition     = var.sign_in == null || try(var.sign_in.client_secret != var.sign_in.session_key, false)
    error_message = "client_secret and session_key must name two different secrets."
  }
}

variable "egress" {
  description = "Where workflows may send requests: only to `only`, if it names anything, and to internal addresses (loopback, private) only if `allow` names them. Host names, `*.domains`, addresses and ranges. Metadata servers are never allowed."
  type = object({
    only  = optional(list(string), [])
    allow = optional(list(string), [])
  })
  default = {}

  validation {
    condition     = alltrue([for entry in concat(var.egress.only, var.egress.allow) : can(regex("^[A-Za-z0-9*._:/-]+$", entry))])
    error_message = "Use names like api.example.com or *.example.com, addresses, or ranges like 10.0.0.0/8."
  }
}

variable "console_url" {
  description = "The address of the console, if it is not the one on run.app."
  type        = string
  default     = null

  validation {
    condition     = var.console_url == null || can(regex("^https://[^/]+$", var.console_url))
    error_message = "Use an address that starts with https:// and has no path."
  }
}

variable "domain" {
  description = "Names of your own for the console and for the API with its webhooks, which a load balancer serves with Google's certificates. Let both resolve to output `front_address`. A client may send `requests_per_minute`."
  type = object({
    console             = string
    api                 = string
    requests_per_minute = optional(number, 1200)
  })
  default = null

  validation {
    condition     = var.domain == null || try(alltrue([for name in [var.domain.console, var.domain.api] : can(regex("^[a-z0-9.-]+\\.[a-z]+$", name))]) && var.domain.console != var.domain.api, false)
    error_message = "Use two different names like ebbflow.example.com and api.ebbflow.example.com."
  }
  validation {
    condition     = var.domain == null || var.api != null
    error_message = "domain requires api."
  }
}

variable "build_trigger" {
  description = "Deploys every commit on a branch: a repository that is connected to Cloud Build in this region (projects/…/locations/…/connections/…/repositories/…), and a regular expression for the branch."
  type = object({
    repository = string
    branch     = optional(string, "^main$")
  })
  default = null

  validation {
    condition     = var.build_trigger == null || can(regex("^projects/[^/]+/locations/[^/]+/connections/[^/]+/repositories/[^/]+$", var.build_trigger.repository))
    error_message = "Use the full name of a connected repository: projects/…/locations/…/connections/…/repositories/…."
  }
}

variable "workflow_secrets" {
  description = "Secrets that workflows may use as `secrets.NAME`: the names of each tenant's, such as `{ default = [\"api-key\"] }`. In this project's Secret Manager they are called INSTALLATION_TENANT_NAME, such as `ebbflow_default_api-key`, and must exist, with a version, before this is applied; their values never pass through terraform. A tenant can use no other tenant's."
  type        = map(set(string))
  default     = {}

  validation {
    condition     = alltrue([for tenant in keys(var.workflow_secrets) : can(regex("^[a-z0-9]+(-[a-z0-9]+)*$", tenant)) && length(tenant) <= 63])
    error_message = "A tenant's name has lower-case letters, digits and single hyphens between them, and at most 63 characters."
  }
  validation {
    condition     = alltrue([for name in flatten([for names in values(var.workflow_secrets) : tolist(names)]) : can(regex("^[A-Za-z_][A-Za-z0-9_-]{0,99}$", name))])
    error_message = "A secret's name has letters, digits, `_` and `-`, begins with a letter or `_`, and has at most 100 characters."
  }
  validation {
    condition     = alltrue([for names in values(var.workflow_secrets) : length(distinct([for name in names : upper(replace(name, "-", "_"))])) == length(names)])
    error_message = "Two names of one tenant differ only in case, or in `-` and `_`: they would share a variable."
  }
}

variable "notice_topics" {
  description = "Your own topics in this project, by id, to which workflow callbacks may publish."
  type        = set(string)
  default     = []

  validation {
    condition     = alltrue([for topic in var.notice_topics : can(regex("^[A-Za-z][A-Za-z0-9._~+%-]{2,254}$", topic))])
    error_message = "Use a topic's id, without projects/…/topics/."
  }
}

variable "event_topics" {
  description = "Your own topics whose messages are events for workflow triggers: ids of topics in this project, or full names of topics elsewhere (projects/…/topics/…), on which you may create subscriptions."
  type        = set(string)
  default     = []

  validation {
    condition     = alltrue([for topic in var.event_topics : can(regex("^(projects/[^/]+/topics/)?[A-Za-z][A-Za-z0-9._~+%-]{2,200}$", topic)) && !startswith(topic, "${var.name}-")])
    error_message = "Use a topic's id or its full name projects/…/topics/…; Ebbflow's own topics already have subscriptions."
  }
}

variable "archive" {
  description = "Archives runs to a bucket before they are deleted: the bucket's name (default: the project id, the installation's name and `archive`, with hyphens), its storage class, and the days after which objects are deleted (default: never)."
  type = object({
    bucket        = optional(string)
    storage_class = optional(string, "COLDLINE")
    keep_days     = optional(number)
  })
  default = null

  validation {
    condition     = var.archive == null || try(coalesce(var.archive.keep_days, 1) >= 1, false)
    error_message = "keep_days must be at least 1; omit it to keep everything."
  }
}

variable "otlp" {
  description = "Where functions send metrics and spans: OTLP over HTTP, as JSON, to a collector, or with `google = true` straight to Cloud Monitoring and Cloud Trace. `headers_secret` names a secret in this project's Secret Manager with headers such as an API key, `name=value` separated by commas. Without it there are only log-based metrics, and no spans."
  type = object({
    endpoint       = optional(string, "https://telemetry.googleapis.com")
    google         = optional(bool, false)
    headers_secret = optional(string)
  })
  default = null

  validation {
    condition     = var.otlp == null || can(regex("^https?://[^/]+", var.otlp.endpoint))
    error_message = "Use an address that starts with https:// or http://, without /v1/traces."
  }
  validation {
    condition     = var.otlp == null || try(var.otlp.google == (var.otlp.endpoint == "https://telemetry.googleapis.com"), false)
    error_message = "Google's endpoint needs `google = true`, and no other endpoint may be sent Google's tokens."
  }
}

variable "retention_days" {
  description = "How many days finished runs, their logs and outputs, audit entries and dead letters are kept."
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
    error_message = "Each value must be between 1 and 36500 days."
  }
}

variable "log_filter" {
  description = "The log filter of the functions, as in RUST_LOG: a level, or levels by module. Lines that alerts count pass every filter."
  type        = string
  default     = "info"
}

variable "alert_emails" {
  description = "Email addresses that receive alerts. Without any, alerts only appear in Cloud Monitoring."
  type        = set(string)
  default     = []

  validation {
    condition     = alltrue([for email in var.alert_emails : can(regex("^[^@]+@[^@]+$", email))])
    error_message = "Use addresses like ada@example.com."
  }
}

variable "paging_channels" {
  description = "Notification channels for the person on call (PagerDuty, Opsgenie, a webhook), by full name, besides email. They receive critical alerts."
  type        = list(string)
  default     = []

  validation {
    condition     = alltrue([for channel in var.paging_channels : can(regex("^projects/[^/]+/notificationChannels/[0-9]+$", channel))])
    error_message = "Use full names, as `gcloud beta monitoring channels list` shows them: projects/…/notificationChannels/…."
  }
}

variable "runbook_url" {
  description = "The address of docs/src/operations/runbook.md, for links in alerts. Without it, alerts only name the chapter."
  type        = string
  default     = null

  validation {
    condition     = var.runbook_url == null || can(regex("^https://", var.runbook_url))
    error_message = "Write an address that begins with https://."
  }
}

variable "deletion_protection" {
  description = "Whether terraform and Cloud SQL refuse to delete the database, and backups outlive it."
  type        = bool
  default     = true
}
