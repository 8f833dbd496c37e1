-- The outputs of a range of tasks, of those that succeeded; null for one without an output.
select tasks.idx, outputs.output
  from tasks
  left join outputs on outputs.run = tasks.run and outputs.idx = tasks.idx
 where tasks.run = $1 and tasks.idx >= $2 and tasks.idx < $3 and tasks.state = 'succeeded'
