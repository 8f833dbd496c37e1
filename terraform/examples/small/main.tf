# The cheapest complete setup: everything scales to zero, on the smallest database that suffices.

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

  # Easy to destroy.
  deletion_protection = false
}

output "ebbflow" {
  description = "Addresses, accounts and commands."
  value       = module.ebbflow
}
