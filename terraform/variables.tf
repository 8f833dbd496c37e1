variable "project_id" {
  description = "The Google Cloud project that Ebbflow lives in."
  type        = string
}

variable "queues" {
  description = "The lanes of execution that workflows may name; each has a topic of its own."
  type        = set(string)
  default     = ["light", "heavy"]

  validation {
    condition     = alltrue([for queue in var.queues : can(regex("^[a-z0-9-]+$", queue))])
    error_message = "A queue is named with lower-case letters, digits and hyphens."
  }
}

variable "dead_letter_push" {
  description = "Where messages that could not be delivered are pushed to: `/dead-letters` of the evaluate service, as which account, for which audience. Without it they wait in their subscriptions."
  type = object({
    endpoint        = string
    service_account = string
    audience        = string
  })
  default = null
}
