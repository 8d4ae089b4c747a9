-- An event.
SELECT pgq.insert_event('bench', 'task', :payload);
