-- The isolation tester does not recognize a sleep in tq as waiting, so workers that wait have
-- sessions of their own, by dblink, which worker() makes.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS dblink;
RESET client_min_messages;
CREATE OR REPLACE FUNCTION worker(name text) RETURNS text LANGUAGE sql AS $$
	SELECT dblink_connect(name, format('host=%s port=%s dbname=%s user=%s application_name=worker_%s',
		split_part(current_setting('unix_socket_directories'), ',', 1), current_setting('port'),
		current_database(), current_user, name)) $$;
