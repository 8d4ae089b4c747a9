-- A task that runs, and whose failure cancels its group.
include id
DO $$ BEGIN
	PERFORM tq.enqueue('iso/w', task_id => id('fatal'), task_group_id => id('group'), policy =>
		jsonb_build_object('retries', 0, 'onUnsuccessful', 'cancel-group', 'deadLetter', true));
	PERFORM tq.claim_work('iso/w', 'g', 'a');
END $$;
