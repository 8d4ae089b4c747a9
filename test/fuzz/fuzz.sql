-- What the targets on a server share.  Each is a function fuzz.NAME(input bytea) that
-- returns a verdict, raises FUZZ0 if a rule is broken, and leaves nothing behind.
CREATE SCHEMA fuzz;

CREATE FUNCTION fuzz.id(name text) RETURNS tq.slugid LANGUAGE sql IMMUTABLE AS
$$ SELECT (rpad(name, 8, '_') || 'QAGAAAAAAAAAAA')::tq.slugid $$;

-- The time is the same for each input, or an input would mean something else tomorrow.  It
-- is one that no input names, because it goes on while an input is checked.
CREATE FUNCTION fuzz.set_clock() RETURNS void LANGUAGE sql AS $$
	SELECT set_config('tq.clock_offset',
		extract(epoch FROM timestamptz '2030-01-01 00:03:17.419Z' - clock_timestamp()) || ' seconds', false) $$;

-- Where libFuzzer runs, a copy that ends at the end of its memory (backend.c).
CREATE FUNCTION fuzz.exact(value jsonb) RETURNS jsonb LANGUAGE sql AS $$ SELECT value $$;

CREATE FUNCTION fuzz.broken(what text, VARIADIC facts text[] DEFAULT '{}') RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	RAISE EXCEPTION USING ERRCODE = 'FUZZ0', MESSAGE = what, DETAIL = array_to_string(facts, E'\n');
END $$;

-- What is right about every error of tq.
CREATE FUNCTION fuzz.check_error(code text, allowed text[], message text, detail text, hint text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	IF code = 'FUZZ0' THEN
		PERFORM fuzz.broken(message, detail);
	ELSIF code <> ALL (allowed) THEN
		PERFORM fuzz.broken('an error of another kind', code, message, detail);
	ELSIF message = '' OR detail = '' OR hint = '' OR length(message || detail || hint) > 2000 THEN
		PERFORM fuzz.broken('an error that says too little or too much', message, detail, hint);
	END IF;
END $$;
