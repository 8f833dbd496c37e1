# Warns when a month costs more than planned. A separate module, since it needs a role on the billing account
# (roles/billing.costsManager) that the person who applies the rest may not have.

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
  description = "The project whose costs count."
  type        = string
}

variable "billing_account" {
  description = "The billing account that pays for the project, like 012345-6789AB-CDEF01."
  type        = string

  validation {
    condition     = can(regex("^[0-9A-F]{6}-[0-9A-F]{6}-[0-9A-F]{6}$", var.billing_account))
    error_message = "Use the form 012345-6789AB-CDEF01; `gcloud billing accounts list` shows it."
  }
}

variable "monthly_amount" {
  description = "The monthly budget, in whole units of the account's currency. The project's owners and the billing administrators are notified at 50 %, 90 % and 100 % of it, and when the forecast reaches 100 %."
  type        = number
  default     = 100

  validation {
    condition     = var.monthly_amount >= 1 && floor(var.monthly_amount) == var.monthly_amount
    error_message = "Use a whole number, at least 1."
  }
}

variable "notification_channels" {
  description = "Cloud Monitoring channels to notify as well, by full name: at most five."
  type        = list(string)
  default     = []

  validation {
    condition     = length(var.notification_channels) <= 5
    error_message = "A budget has at most five channels."
  }
}

# Without a quota project, a person's own credentials cannot create budgets.
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
