# The cheapest complete setup: everything scales to zero, on the smallest database that suffices. Nothing wakes it but work, and
# a tick once an hour.

terraform {
  required_version = ">= 1.11"

  required_providers {
    google = {
      source  = "hashicorp/google"
      version = ">= 7.20, < 8.0"
    }
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
  description = "Email addresses that receive alerts. Without any, alerts only appear in Cloud Monitoring."
  type        = set(string)
  default     = []
}

provider "google" {
  project = var.project_id
  region  = var.region
}

module "ebbflow" {
  source = "../.."

  project_id   = var.project_id
  name         = var.name
  region       = var.region
  image        = var.image
  worker_image = var.worker_image
  api          = { accounts = var.accounts }
  iap          = var.iap && var.sign_in == null
  sign_in      = var.sign_in
  alert_emails = var.alert_emails

  # Execute services run no code of users; worker pools do.
  queues = merge(
    { light = {}, heavy = { concurrency = 1, memory = "2Gi" } },
    { for queue, pool in var.pools : queue => merge(pool, { kind = "pool" }) },
  )
  # Cloud Tasks calls the sweep when something is due: an idle installation leaves its database alone.
  wake = "tasks"
  # Functions log in through IAM.
  database = { iam_login = true }

  # Easy to destroy.
  deletion_protection = false
}

output "ebbflow" {
  description = "Addresses, accounts and commands."
  value       = module.ebbflow
}
