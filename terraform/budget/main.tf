# Says when a month costs more than was meant. A module of its own, since it needs rights on the billing account
# (roles/billing.costsManager), which whoever applies the rest may not have.

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
  description = "The project whose costs are watched."
  type        = string
}

variable "billing_account" {
  description = "The billing account that pays for the project, like 012345-6789AB-CDEF01."
  type        = string

  validation {
    condition     = can(regex("^[0-9A-F]{6}-[0-9A-F]{6}-[0-9A-F]{6}$", var.billing_account))
    error_message = "Write the billing account like 012345-6789AB-CDEF01; `gcloud billing accounts list` shows it."
  }
}

variable "monthly_amount" {
  description = "What a month may cost, in whole units of the account's currency. Owners of the project and whoever pays are told at half, at nine tenths and at all of it, and when all of it is to be expected."
  type        = number
  default     = 100

  validation {
    condition     = var.monthly_amount >= 1 && floor(var.monthly_amount) == var.monthly_amount
    error_message = "Write a whole number from 1."
  }
}

variable "notification_channels" {
  description = "Channels of Cloud Monitoring, by full name, that are told too: five at most."
  type        = list(string)
  default     = []

  validation {
    condition     = length(var.notification_channels) <= 5
    error_message = "A budget takes five channels at most."
  }
}

# Without a quota project, budgets cannot be made as a person.
provider "google" {
  project               = var.project_id
  billing_project       = var.project_id
  user_project_override = true
}

resource "google_project_service" "budgets" {
  project            = var.project_id
  service            = "billingbudgets.googleapis.com"
  disable_on_destroy = false
}

data "google_project" "this" {
  project_id = var.project_id
}

resource "google_billing_budget" "this" {
  billing_account = var.billing_account
  display_name    = "Ebbflow in ${var.project_id}"

  budget_filter {
    projects        = ["projects/${data.google_project.this.number}"]
    calendar_period = "MONTH"
  }

  amount {
    specified_amount {
      units = tostring(var.monthly_amount)
    }
  }

  dynamic "threshold_rules" {
    for_each = [0.5, 0.9, 1.0]
    content {
      threshold_percent = threshold_rules.value
    }
  }
  threshold_rules {
    threshold_percent = 1.0
    spend_basis       = "FORECASTED_SPEND"
  }

  dynamic "all_updates_rule" {
    for_each = length(var.notification_channels) == 0 ? [] : [var.notification_channels]
    content {
      monitoring_notification_channels = all_updates_rule.value
      enable_project_level_recipients  = true
    }
  }

  depends_on = [google_project_service.budgets]
}

output "budget" {
  description = "The budget's name."
  value       = google_billing_budget.this.name
}
