-- Rows of tasks, which may have outlived them.
CREATE OR REPLACE VIEW leftovers AS
	SELECT 'holder' AS what, task FROM holders UNION ALL SELECT 'run', task FROM tq_internal.run UNION ALL
	SELECT 'detail', task FROM tq_internal.run_detail UNION ALL SELECT 'edge', required FROM tq_internal.dependency UNION ALL
	SELECT 'edge', dependent FROM tq_internal.dependency WHERE dependent <> 0 UNION ALL
	SELECT 'edge', dependent FROM tq_internal.foreign_dependency;
