output "topics" {
  description = "The topics by name."
  value       = { for name, topic in google_pubsub_topic.topic : name => topic.id }
}
