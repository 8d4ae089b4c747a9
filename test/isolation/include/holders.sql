-- The rows of which an unresolved task has exactly one, and a resolved one none.
CREATE OR REPLACE VIEW holders AS
	SELECT task FROM tq_internal.unscheduled UNION ALL SELECT task FROM tq_internal.pending UNION ALL
	SELECT task FROM tq_internal.delayed UNION ALL SELECT task FROM tq_internal.run WHERE state = 2;
