# The cheapest that does everything: all scales to zero, the smallest database that carries it.

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
  description = "The image to begin with."
  type        = string
}

variable "worker_image" {
  description = "The image with bash and python, for the queues to begin with."
  type        = string
}

variable "accounts" {
  description = "Who may use the API and the pages: addresses and `@domains`."
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

  # Easily thrown away.
  deletion_protection = false
}

output "ebbflow" {
  description = "Addresses, accounts and commands."
  value       = module.ebbflow
}
