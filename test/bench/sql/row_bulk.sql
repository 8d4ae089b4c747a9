INSERT INTO bare_row (payload) SELECT * FROM unnest(:batch::jsonb[])
