INSERT INTO bare (payload) SELECT * FROM unnest(:batch::jsonb[])
