variables {
  project_id      = "some-project"
  billing_account = "012345-6789AB-CDEF01"
}

run "the_budget_warns_early" {
  command = apply

  assert {
    condition     = join(" ", [for rule in google_billing_budget.this.threshold_rules : rule.threshold_percent]) == "0.5 0.9 1 1" && google_billing_budget.this.threshold_rules[3].spend_basis == "FORECASTED_SPEND"
    error_message = "A budget tells at half, at nine tenths, at all, and when all is to be expected."
  }
}

run "a_billing_account_has_its_form" {
  command = plan

  variables {
    billing_account = "my account"
  }

  expect_failures = [var.billing_account]
}
