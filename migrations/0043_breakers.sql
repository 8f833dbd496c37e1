-- Workers say with each beat to which hosts they make no calls for a while, and since and until when.
alter table workers add column breakers json;
