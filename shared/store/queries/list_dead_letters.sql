-- A page of the dead letters, newest first. A filter that is null lets everything pass.
select id, source, reason, body, at
  from dead_letters
 where ($1::text is null or source = $1)
   and ($2::text is null or position($2 in reason) > 0 or position($2 in body) > 0)
   and ($3::timestamptz is null or (at, id) < ($3, $4::text collate "C"))
 order by at desc, id desc
 limit $5
