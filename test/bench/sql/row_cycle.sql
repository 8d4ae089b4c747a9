-- Rows that are inserted, and updated twice by their primary keys.
INSERT INTO bare_row (payload) SELECT * FROM unnest(:batch::jsonb[]) RETURNING id
UPDATE bare_row SET taken_until = now() + interval '20 min', worker = 'w' || :client::text WHERE id = ANY (:id::bigint[])
UPDATE bare_row SET resolved = now() WHERE id = ANY (:id::bigint[])
