SELECT tq.create_tasks(:batch)
