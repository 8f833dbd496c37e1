# For production: a database with a standby in another zone, functions that are always up, and alerts by email.

terraform {
  required_version = ">= 1.11"

  required_providers {
    google = {
      source  = "hashicorp/google"
      version = ">= 7.20, < 8.0"
    }
  }

  # Shared state with a lock: terraform init -backend-config=bucket=MY-BUCKET
  backend "gcs" {
    prefix = "ebbflow"
  }
}

variable "project_id" {
  description = "The Google Cloud project."
  type        = string
}

variable "name" {
  description = "The name of the installation, which all its resources begin with."
  type        = string
  default     = "ebbflow"
}

variable "region" {
  description = "The region for everything."
  type        = string
  default     = "us-central1"
}

variable "image" {
  description = "The first image."
  type        = string
}

variable "worker_image" {
  description = "The first image of execute services and worker pools, with bash and python."
  type        = string
}

variable "pools" {
  description = "Queues whose tasks worker pools run, with `bash` and `python`: for each the secret with its token, which must exist, and its size; see `queues` of the module."
  type = map(object({
    token_secret  = string
    slots         = optional(number)
    labels        = optional(map(string))
    max_instances = optional(number)
    cpu           = optional(string)
    memory        = optional(string)
  }))
  default = {}
}

variable "iap" {
  description = "Whether Identity-Aware Proxy signs people in to the console. In a project without an organization, set `sign_in` instead."
  type        = bool
  default     = true
}

variable "sign_in" {
  description = "An OAuth client to sign in with, instead of Identity-Aware Proxy; see the module."
  type = object({
    client_id     = string
    client_secret = string
    session_key   = string
  })
  default = null
}

variable "accounts" {
  description = "Who may use the API and the console: email addresses and `@domains`."
  type        = list(string)
}

variable "alert_emails" {
  description = "Email addresses that receive alerts."
  type        = set(string)
}

variable "paging_channels" {
  description = "Notification channels for the person on call, by full name."
  type        = list(string)
  default     = []
}

variable "runbook_url" {
  description = "The address of docs/src/operations/runbook.md, for links in alerts."
  type        = string
}

variable "deletion_protection" {
  description = "Whether terraform and Cloud SQL refuse to delete the database. Set it to false before you destroy everything."
  type        = bool
  default     = true
}

variable "log_filter" {
  description = "The log filter of the functions, as in RUST_LOG."
  type        = string
  default     = "info"
}

provider "google" {
  project = var.project_id
  region  = var.region
}

module "ebbflow" {
  source = "../.."

  project_id      = var.project_id
  name            = var.name
  region          = var.region
  image           = var.image
  worker_image    = var.worker_image
  api             = { accounts = var.accounts }
  iap             = var.iap && var.sign_in == null
  sign_in         = var.sign_in
  alert_emails    = var.alert_emails
  paging_channels = var.paging_channels
  runbook_url     = var.runbook_url
  log_filter      = var.log_filter
  # Destroying everything takes `-var deletion_protection=false` first.
  deletion_protection = var.deletion_protection
  # Cloud Tasks calls the sweep when something is due: timers are exact, without an instance that stays up.
  wake = "tasks"
  # Runs are archived before they are deleted.
  archive = {}
  # Metrics and spans go to Google, where the alert on slow tasks needs them.
  otlp = { google = true }

  functions = {
    trigger  = { min_instances = 1, max_instances = 6, connections = 5 }
    evaluate = { min_instances = 1, max_instances = 8, connections = 5 }
    sweep    = { max_instances = 2, connections = 5 }
    console  = { max_instances = 3, connections = 5 }
  }

  queues = merge(
    {
      light = { min_instances = 1, max_instances = 8, concurrency = 40, connections = 5, memory = "1Gi" }
      heavy = { max_instances = 8, concurrency = 4, connections = 5, cpu = "4", memory = "8Gi" }
    },
    # Execute services run no code of users; worker pools do.
    { for queue, pool in var.pools : queue => merge(pool, { kind = "pool" }) },
  )

  database = {
    tier              = "db-custom-2-7680"
    high_availability = true
    disk_gb           = 50
    max_connections   = 400
    backups           = 14
    # Functions log in through IAM.
    iam_login = true
  }
}

output "ebbflow" {
  description = "Addresses, accounts and commands."
  value       = module.ebbflow
}
