-- Runs a target on the inputs of its corpus, printed as TAP: psql -v target=NAME -v corpus=FILE.
-- A line is an input in the format "escape" of bytea, as replay.c reads it.
\setenv CORPUS :corpus
\set lines `cat "$CORPUS"`
CREATE TEMP TABLE verdict (number int, input text, verdict text);
SELECT set_config('fuzz.target', :'target', false) \g /dev/null
SELECT set_config('fuzz.lines', :'lines', false) \g /dev/null
DO $$
DECLARE
	line record;
	verdict text;
BEGIN
	FOR line IN SELECT * FROM regexp_split_to_table(current_setting('fuzz.lines'), '\n') WITH ORDINALITY l (input, number) LOOP
		EXECUTE format('SELECT fuzz.%I($1)', current_setting('fuzz.target')) INTO verdict USING decode(line.input, 'escape');
		INSERT INTO pg_temp.verdict VALUES (line.number, line.input, verdict);
	END LOOP;
EXCEPTION WHEN OTHERS THEN
	RAISE EXCEPTION USING ERRCODE = SQLSTATE, MESSAGE = format('line %s of the corpus: %s', line.number, SQLERRM), DETAIL = line.input;
END $$;
SELECT format('%sok 1 - %s, %s inputs, %s verdicts', CASE WHEN count(*) = 0 THEN 'not ' END, :'target', count(*), count(DISTINCT verdict))
FROM verdict;
