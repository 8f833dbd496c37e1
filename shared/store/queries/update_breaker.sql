-- Writes a breaker whose row is locked.
update breakers
   set failed_at = $2, message = $3, opened_at = $4, open_until = $5, pause_seconds = $6, probing = $7
 where id = $1
