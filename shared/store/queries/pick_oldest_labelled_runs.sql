-- Which runs of a tenant with a label pass, oldest first. A filter that is null lets everything pass.
select runs.id, labelled.created_at as place
  from run_labels as labelled join runs on runs.id = labelled.run
 where labelled.tenant = $1
   and labelled.label = $14
   and ($2::text is null or runs.workflow = $2)
   and ($3::text is null or runs.state = $3)
   and ($4::uuid is null or runs.parent_run = $4)
   and ($5::timestamptz is null or runs.created_at >= $5)
   and ($6::timestamptz is null or runs.created_at < $6)
   and ($7::text is null or exists (
           select from run_facts
            where run_facts.run = runs.id
              and position($7 in lower(concat_ws(E'\n', runs.id, runs.workflow, runs.error, run_facts.trigger_by,
                                                 run_facts.labels))) > 0))
   and ($8::timestamptz is null or (labelled.created_at, labelled.run) > ($8, $9::uuid))
   and ($10::timestamptz is null or (labelled.created_at, labelled.run) <= ($10, $11::uuid))
 order by labelled.created_at, labelled.run
 limit $12 offset $13
