-- A page of the workers that are alive or died after $3.
select *, (select count(*) from tasks where worker = workers.id) as holding
  from workers
 where id > coalesce($1::uuid, '00000000-0000-0000-0000-000000000000')
   and (dead_at is null or dead_at > $3)
 order by id
 limit $2
