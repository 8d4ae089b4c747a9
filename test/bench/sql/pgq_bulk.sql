SELECT count(pgq.insert_event('bench', 'task', payload)) FROM unnest(:batch::text[]) AS payload
