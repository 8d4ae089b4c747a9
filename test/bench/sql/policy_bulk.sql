SELECT tq.enqueue_tasks('bench/w', :batch, policy => :policy)
