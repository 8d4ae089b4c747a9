-- A task that runs.
DO $$ BEGIN
	PERFORM tq.enqueue('iso/w', task_id => id('one'));
	PERFORM tq.claim_work('iso/w', 'g', 'a');
END $$;
