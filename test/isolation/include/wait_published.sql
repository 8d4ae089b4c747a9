-- wait_published() waits until all committed messages are published.
CREATE OR REPLACE FUNCTION wait_published() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	WHILE EXISTS (SELECT FROM tq_internal.unpublished)
	LOOP
		IF clock_timestamp() > statement_timestamp() + interval '1 minute' THEN
			RAISE EXCEPTION 'something is not published';
		END IF;
		PERFORM pg_sleep(0.005);
	END LOOP;
END $$;
