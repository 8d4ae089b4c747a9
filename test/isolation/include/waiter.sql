-- A session of its own by dblink.
include asleep
CREATE OR REPLACE FUNCTION waiter(name text) RETURNS text LANGUAGE sql AS $$
	SELECT dblink_connect(name, format('host=%s port=%s dbname=%s user=%s application_name=waiter_%s',
		split_part(current_setting('unix_socket_directories'), ',', 1), current_setting('port'),
		current_database(), current_user, name)) $$;
