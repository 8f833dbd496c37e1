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

variable "image" {
  description = "The first image."
  type        = string
}

variable "worker_image" {
  description = "The first image of the queues' workers, with bash and python."
  type        = string
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

provider "google" {
  project = var.project_id
}

module "ebbflow" {
  source = "../.."

  project_id   = var.project_id
  image        = var.image
  worker_image = var.worker_image
  api          = { accounts = var.accounts }
  iap          = var.iap && var.sign_in == null
  sign_in      = var.sign_in

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
