-- Three tasks, which enqueue() makes.
DO $$ BEGIN
	PERFORM claim(1);	-- so that the rows of the queue and the worker exist
	PERFORM enqueue('one');
	PERFORM enqueue('two');
	PERFORM enqueue('three');
END $$;
