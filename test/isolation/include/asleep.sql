-- asleep() waits until so many sessions sleep in tq, for no longer than 5 seconds, because
-- a worker looks by itself after 10.
CREATE OR REPLACE FUNCTION asleep(n int) RETURNS bool LANGUAGE plpgsql AS $$
DECLARE
	until timestamptz := clock_timestamp() + '5 s';
BEGIN
	WHILE clock_timestamp() < until LOOP
		PERFORM pg_stat_clear_snapshot();
		IF n = (SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()
				AND backend_type = 'client backend' AND state = 'active' AND wait_event_type = 'Extension') THEN
			RETURN true;
		END IF;
		PERFORM pg_sleep(0.005);
	END LOOP;
	RETURN false;
END $$;
