// Made by client/make of client/interface.json.
import type { Access, ExceptionReason, Overlap, Priority, Requires, State } from './index.js'
export type Json = string | number | boolean | null | readonly Json[] | { readonly [key: string]: Json | undefined }
/** A number is seconds; a text as PostgreSQL reads an interval: '5 min'. */
export type Interval = number | string
/** As pg returns an interval. */
export interface Duration { years?: number, months?: number, days?: number, hours?: number, minutes?: number, seconds?: number, milliseconds?: number }

/** The functions of schema tq, with their arguments by name. */
export interface Calls {
  /** acknowledge the messages of a durable subscription up to that id */
  ack(arguments: { name: string; id: number }): Promise<void>
  /** give an unscheduled task further dependencies; those that it has already change nothing; returns its status */
  addDependencies(arguments: { taskId: string; dependencies: string[] }): Promise<any>
  /** cancel, rerun, schedule, move, delay, redrive, discard, delete, expire, or give another priority to, all tasks that a filter finds, at most so many; commits after each batch, so not in a transaction block; tasks is how many, refused has the others by reason; a dry run has in found what it would be, by queue and state */
  apply(arguments: { filter: Json; action: string; arguments?: Json | null; dryRun?: boolean | null; max?: number | null }): Promise<{ tasks: number | null; refused: any; found: any }>
  /** an artifact without its content, with the keys of Taskcluster; links are not followed */
  artifactInfo(arguments: { taskId: string; runId: number; name: string }): Promise<any>
  /** have the scopes of these credentials, in place of those of the role, until the transaction ends */
  assume(arguments: { credentials: Json }): Promise<void>
  /** bind a channel to an exchange, so that NOTIFY on it sends the messages that match */
  bind(arguments: { channel: string; exchange: string; pattern?: string | null }): Promise<void>
  /** take back what on_group_resolved() has registered for a group and has not created yet: the task of that id, or all; returns how many */
  cancelGroupCallbacks(arguments: { taskGroupId: string; taskId?: string | null }): Promise<number>
  /** resolve an unresolved task as exception, canceled; returns its status */
  cancelTask(arguments: { taskId: string }): Promise<any>
  /** cancel every unresolved task of a sealed group */
  cancelTaskGroup(arguments: { taskGroupId: string }): Promise<any>
  /** cancel the tasks of a queue that are in one of these states and have this name and these tags, at most so many; commits after each batch, so not in a transaction block; tasks is how many */
  cancelTasks(arguments: { taskQueueId: string; name?: string | null; tags?: Json | null; states?: State[] | null; max?: number | null }): Promise<{ tasks: number | null }>
  /** change the priority of those tasks of a group that were never resolved */
  changeTaskGroupPriority(arguments: { taskGroupId: string; priority: Priority }): Promise<any>
  /** change the priority of an unresolved task; returns its status */
  changeTaskPriority(arguments: { taskId: string; priority: Priority }): Promise<any>
  /** claim this pending run; no row when the worker is quarantined; claim_for and definition as in claim_work() */
  claimTask(arguments: { taskId: string; runId: number; workerGroup?: string | null; workerId?: string | null; claimFor?: Interval | null; definition?: boolean | null }): Promise<{ task_id: string; run_id: number; worker_group: string; worker_id: string; taken_until: Date; payload: any; credentials: any; task: any; status: any }[]>
  /** claim up to that many pending runs of a queue, by priority, then in order; with wait, at most 60 s, sleep until there is one; for claim_for, or the claimTimeout; with their definitions and statuses if definition is true */
  claimWork(arguments: { taskQueueId: string; workerGroup?: string | null; workerId?: string | null; tasks?: number | null; wait?: Interval | null; claimFor?: Interval | null; definition?: boolean | null }): Promise<{ task_id: string; run_id: number; worker_group: string; worker_id: string; taken_until: Date; payload: any; credentials: any; task: any; status: any }[]>
  /** claim up to that many pending runs of several queues, or of patterns like app/*, which stand for all queues of a provisioner: in this order, or with mode round-robin in turns and equal shares */
  claimWork(arguments: { taskQueueIds: string[]; workerGroup?: string | null; workerId?: string | null; tasks?: number | null; wait?: Interval | null; claimFor?: Interval | null; definition?: boolean | null; mode?: 'strict' | 'round-robin' | null }): Promise<{ task_id: string; run_id: number; worker_group: string; worker_id: string; taken_until: Date; payload: any; credentials: any; task_queue_id: string; task: any; status: any }[]>
  /** the policy that corresponds to a Conductor task definition and its use in a workflow */
  conductorPolicy(arguments: { taskDef: Json; workflowTask?: Json | null }): Promise<any>
  /** the state of a task as a Conductor status; NULL while it is unscheduled */
  conductorStatus(arguments: { taskId: string }): Promise<string>
  /** create an artifact of a run, from a Taskcluster createArtifact request; repeats of the same are harmless */
  createArtifact(arguments: { taskId: string; runId: number; name: string; artifact: Json; credentials?: Json | null }): Promise<any>
  /** create a task from a Taskcluster task definition; repeats of the same are harmless; returns its status */
  createTask(arguments: { taskId: string; task: Json }): Promise<any>
  /** create many tasks, all or none, from [{"taskId", "task"}]; they may depend on each other; returns how many are new */
  createTasks(arguments: { tasks: Json }): Promise<number>
  /** the chain of tasks that decided when a group ended, or is expected to decide it: how long each waited, ran and was retried, and by how much another would have come later */
  criticalPath(arguments: { taskGroupId: string }): Promise<{ place: number | null; task_id: string | null; name: string | null; state: string | null; begins: Date | null; ends: Date | null; waiting: Duration | null; running: Duration | null; retrying: Duration | null; share: number | null; slack: Duration | null }[]>
  /** the scopes of the caller, without those that others cover */
  currentScopes(): Promise<string[]>
  /** make a worker and its queue known until then at least, with how many tasks it works on at a time and the version of its program; returns the worker */
  declareWorker(arguments: { taskQueueId: string; workerGroup: string; workerId: string; expires: Date | string; capacity?: number | null; version?: string | null }): Promise<any>
  /** return a running run to its queue, to be claimed again after that time; returns the status of the task */
  deferTask(arguments: { taskId: string; runId: number; after: Interval; credentials?: Json | null }): Promise<any>
  /** create a task that depends on itself, so that it waits for schedule_task; returns its status */
  defineTask(arguments: { taskId: string; task: Json }): Promise<any>
  /** delete a task in any state, with its runs, artifacts and dead letter; tasks that depend on it stay unscheduled */
  deleteTask(arguments: { taskId: string }): Promise<void>
  /** state and result of each task that this one depends on, in the order of its definition; the state of one that has expired or was deleted is missing */
  dependencyResults(arguments: { taskId: string }): Promise<{ task_id: string; state: string; result: any }[]>
  /** drop a dead letter; the task stays as it is */
  discardDeadLetter(arguments: { taskId: string }): Promise<void>
  /** create a task from SQL arguments; deadline counts from when the task becomes visible, NULL: none, left out: tq.default_deadline; expires from the deadline, or NULL: by retention; retry is how often failures and lost runs are retried, with backoff; returns its id */
  enqueue(arguments: { taskQueueId: string; payload?: Json | null; taskId?: string | null; taskGroupId?: string | null; dependencies?: string[] | null; requires?: Requires | null; priority?: Priority | null; retries?: number | null; deadline?: Interval | null; expires?: Interval | null; delay?: Interval | null; routes?: string[] | null; scopes?: string[] | null; tags?: Json | null; extra?: Json | null; name?: string | null; schedulerId?: string | null; projectId?: string | null; policy?: Json | null; retry?: number | null; runAt?: Date | string | null }): Promise<string>
  /** create a task for each payload, alike in all else, as enqueue does; returns their ids in the same order */
  enqueueTasks(arguments: { taskQueueId: string; payloads: Json[]; taskIds?: string[] | null; taskGroupId?: string | null; dependencies?: string[] | null; requires?: Requires | null; priority?: Priority | null; retries?: number | null; deadline?: Interval | null; expires?: Interval | null; delay?: Interval | null; routes?: string[] | null; scopes?: string[] | null; tags?: Json | null; extra?: Json | null; name?: string | null; schedulerId?: string | null; projectId?: string | null; policy?: Json | null; retry?: number | null; runAt?: Date | string | null }): Promise<string[]>
  /** tasks that a filter finds and that failed, in groups by reason and shape of their last error, the largest first, and the others as one without a reason; if the budget is used, a last row without a task says how far that came, and has the page after which to go on */
  failureGroups(arguments?: { filter?: Json | null; after?: string | null; max?: number | null; budget?: Interval | null }): Promise<{ error: string | null; reason: string | null; tasks: number | null; first_failed: Date | null; last_failed: Date | null; task_queue_ids: string[] | null; task_id: string | null; page: string | null }[]>
  /** the first messages of a durable subscription that are not acknowledged */
  fetch(arguments: { name: string; max?: number | null }): Promise<{ id: number; exchange: string; routing_key: string; cc: string[]; payload: any; published: Date }[]>
  /** task groups of tq.group_overview, the newest first, of that name, or whose name begins with what is before a star, until there are max, or the budget is used: then a last row without a group says so; go on after the page of the last row */
  findGroups(arguments?: { pattern?: string | null; after?: string | null; max?: number | null; budget?: Interval | null }): Promise<{ task_group_id: string | null; name: string | null; outcome: string; tasks: number | null; unscheduled: number | null; delayed: number | null; pending: number | null; running: number | null; completed: number | null; failed: number | null; exception: number | null; first_created: Date | null; last_resolved: Date | null; sealed: Date | null; page: string | null }[]>
  /** tasks that a filter finds, newest first, until there are max, or the budget is used: then a last row without a task says how far that came; go on after the page of the last row */
  findTasks(arguments: { filter: Json; after?: string | null; max?: number | null; budget?: Interval | null }): Promise<{ task_id: string | null; task_queue_id: string | null; name: string | null; state: string | null; reason: string | null; priority: string | null; created: Date | null; resolved: Date | null; error: string | null; page: string | null }[]>
  /** mark the content of an object artifact as uploaded */
  finishArtifact(arguments: { taskId: string; runId: number; name: string; uploadId: string; credentials?: Json | null }): Promise<void>
  /** where the content of an artifact is, or inline the content; links are followed */
  getArtifact(arguments: { taskId: string; runId: number; name: string }): Promise<any>
  /** get_artifact() of the last run */
  getLatestArtifact(arguments: { taskId: string; name: string }): Promise<any>
  /** taskGroupId, schedulerId, expires and, once it is, sealed */
  getTaskGroup(arguments: { taskGroupId: string }): Promise<any>
  /** a queue: its settings, when a worker last asked it for work, and when it expires */
  getTaskQueue(arguments: { taskQueueId: string }): Promise<any>
  /** a worker: when it was seen, its recent tasks, and its quarantines with their reasons */
  getWorker(arguments: { taskQueueId: string; workerGroup: string; workerId: string }): Promise<any>
  /** grant a role the scopes to produce, work, read, manage, join, depend or unique in a queue, or in all whose names begin like that when it ends in a star; work as workers of these names only */
  grantQueue(arguments: { role: string; taskQueueId: string; access: Access; workers?: string | null }): Promise<void>
  /** grant scopes to a role and its members; a star at the end of a scope stands for any text */
  grantScopes(arguments: { role: string; scopes: string[] }): Promise<void>
  /** the graph of a task group for Graphviz */
  groupDot(arguments: { taskGroupId: string; maxNodes?: number | null }): Promise<string>
  /** the runs of a task group by worker and time, as an SVG */
  groupGantt(arguments: { taskGroupId: string; maxRows?: number | null }): Promise<string>
  /** the graph of a task group as an SVG; with a link, such as /task?id=, the box of a task leads to that with its id */
  groupGraph(arguments: { taskGroupId: string; maxNodes?: number | null; link?: string | null }): Promise<string>
  /** the graph of a task group as a flowchart of Mermaid */
  groupMermaid(arguments: { taskGroupId: string; maxNodes?: number | null }): Promise<string>
  /** number of tasks of a group in each state, its outcome, and whether it is blocked */
  groupProgress(arguments: { taskGroupId: string }): Promise<{ tasks: number; unscheduled: number; delayed: number; pending: number; running: number; completed: number; failed: number; exception: number; tolerated: number; outcome: string; first_created: Date; last_resolved: Date; done: number; blocked: boolean | null; blocked_by: string[] | null } | null>
  /** the tasks of a group as short rows, in the order of their creation: state, number of runs, and why the last one was resolved, or its progress */
  groupTasks(arguments: { taskGroupId: string }): Promise<{ task_id: string | null; name: string | null; state: string | null; runs: number | null; detail: string | null }[]>
  /** a task group as lines for a terminal: each task below the last that it depends on, with its state */
  groupTree(arguments: { taskGroupId: string; maxNodes?: number | null }): Promise<string[]>
  /** what keeps this database from working as it should: a row for each check, with a hint where it is not ok; thresholds of checks by name, others than the default ones */
  health(arguments?: { thresholds?: Json | null }): Promise<{ name: string | null; ok: boolean | null; detail: string | null; hint: string | null }[]>
  /** artifact_info() of the last run */
  latestArtifactInfo(arguments: { taskId: string; name: string }): Promise<any>
  /** artifacts of a run, by name; go on after the last name seen */
  listArtifacts(arguments: { taskId: string; runId: number; after?: string | null; max?: number | null }): Promise<{ run_id: number; name: string; storage_type: string; content_type: string; content_length: number | null; expires: Date; present: boolean }[]>
  /** runs of a queue that workers have, in the order in which they were claimed; go on after the page of the last row */
  listClaimedTasks(arguments: { taskQueueId: string; after?: string | null; max?: number | null }): Promise<{ task_id: string; run_id: number; worker_group: string; worker_id: string; claimed: Date; task: any; page: string }[]>
  /** tasks of a queue that failed for good, by task id; go on after the last id seen */
  listDeadLetters(arguments: { taskQueueId: string; after?: string | null; max?: number | null }): Promise<{ task_id: string; failed_at: Date; reason: string; error: any; task: any; runs: any }[]>
  /** tasks that name this one in their dependencies, by task id; go on after the last id seen */
  listDependentTasks(arguments: { taskId: string; after?: string | null; max?: number | null }): Promise<{ task_id: string; status: any; task: any }[]>
  /** list_artifacts() of the last run */
  listLatestArtifacts(arguments: { taskId: string; after?: string | null; max?: number | null }): Promise<{ run_id: number; name: string; storage_type: string; content_type: string; content_length: number | null; expires: Date; present: boolean }[]>
  /** runs of a queue that can be claimed, in the order in which they became pending; go on after the page of the last row */
  listPendingTasks(arguments: { taskQueueId: string; after?: string | null; max?: number | null }): Promise<{ task_id: string; run_id: number; task: any; inserted: Date; page: string }[]>
  /** tasks of a group, by task id; go on after the last id seen */
  listTaskGroup(arguments: { taskGroupId: string; after?: string | null; max?: number | null }): Promise<{ task_id: string; status: any; task: any }[]>
  /** queues that workers ask for work, by name; go on after the last name */
  listTaskQueues(arguments?: { after?: string | null; max?: number | null }): Promise<{ task_queue_id: string; provisioner_id: string; worker_type: string; expires: Date; last_date_active: Date; description: string; stability: string; page: string }[]>
  /** workers of a queue by group and id, all or only those that are, or are not, in quarantine; go on after the page of the last row */
  listWorkers(arguments: { taskQueueId: string; quarantined?: boolean | null; after?: string | null; max?: number | null }): Promise<{ worker_group: string; worker_id: string; first_claim: Date | null; last_date_active: Date | null; latest_task_id: string; latest_run_id: number; quarantine_until: Date | null; page: string }[]>
  /** the message of that id, whole */
  message(arguments: { id: number }): Promise<{ id: number; exchange: string; routing_key: string; cc: string[]; payload: any; published: Date } | null>
  /** messages in the order of publication, after that id, which is counted from the last one if it is negative; go on after the last id seen */
  messages(arguments?: { exchange?: string | null; pattern?: string | null; after?: number | null; max?: number | null }): Promise<{ id: number; exchange: string; routing_key: string; cc: string[]; payload: any; published: Date }[]>
  /** what the server counts, in the text form of Prometheus; a queue beyond the first tq.metrics_queues counts as queue="other" */
  metrics(): Promise<string>
  /** move the unscheduled, delayed and pending tasks of a queue to another one, at most so many; commits after each batch, so not in a transaction block; tasks is how many */
  moveTasks(arguments: { taskQueueId: string; toTaskQueueId: string; max?: number | null }): Promise<{ tasks: number | null }>
  /** give a group a name, which views and pictures show beside its id; NULL: none */
  nameTaskGroup(arguments: { taskGroupId: string; name: string }): Promise<void>
  /** create a task, once, when no task of the group is unresolved any more; its payload has the outcome as "group"; deadline counts from then, NULL: none, left out: tq.default_deadline; returns its id */
  onGroupResolved(arguments: { taskGroupId: string; taskQueueId: string; payload?: Json | null; taskId?: string | null; priority?: Priority | null; retry?: number | null; deadline?: Interval | null; tags?: Json | null; name?: string | null; policy?: Json | null }): Promise<string>
  /** let a recurring task create no tasks until resume_cron() */
  pauseCron(arguments: { name: string; owner?: string | null }): Promise<{ name: string; schedule: string; active: boolean; owner: string; job_id: number | null; command: string | null }[]>
  /** hand out no tasks of a queue until resume_queue(); nothing is lost, and time goes on */
  pauseQueue(arguments: { taskQueueId: string }): Promise<any>
  /** before DROP EXTENSION tq: unschedule the jobs of pg_cron that call only tq, and list what else is to be done, in that order: done, elsewhere, before, drop, after; statement NULL: by hand, or nothing */
  prepareDrop(): Promise<{ moment: string | null; object: string | null; statement: string | null }[]>
  /** delete resolved tasks of a queue that are in one of these states and were resolved so long ago, except those that unresolved tasks need; returns how many */
  purge(arguments: { taskQueueId: string; states?: State[] | null; olderThan?: Interval | null; max?: number | null }): Promise<number>
  /** let a worker claim no tasks until then; a past time ends the quarantine */
  quarantineWorker(arguments: { taskQueueId: string; workerGroup: string; workerId: string; quarantineUntil: Date | string; quarantineInfo?: string | null }): Promise<any>
  /** the channel that is notified when runs of this queue become claimable */
  queueChannel(arguments: { taskQueueId: string }): Promise<string>
  /** what has happened in queues, a row for each step of each queue: rates, what there was at its end, and how long runs waited and took */
  queueHistory(arguments?: { queue?: string | null; since?: Date | string | null; until?: Date | string | null; step?: Interval | null }): Promise<{ task_queue_id: string | null; at: Date | null; seconds: number | null; created_per_s: number | null; claimed_per_s: number | null; completed_per_s: number | null; failed_per_s: number | null; exception_per_s: number | null; retried_per_s: number | null; expired_claims_per_s: number | null; pending: number | null; delayed: number | null; blocked: number | null; running: number | null; wait_p50: Duration | null; wait_p95: Duration | null; wait_p99: Duration | null; run_p50: Duration | null; run_p95: Duration | null; run_p99: Duration | null }[]>
  /** extend the claim on a running run, by claim_for from now, or the claimTimeout, after a wait that ends with the run; the payload is left out */
  reclaimTask(arguments: { taskId: string; runId: number; wait?: Interval | null; claimFor?: Interval | null; credentials?: Json | null }): Promise<{ task_id: string; run_id: number; worker_group: string; worker_id: string; taken_until: Date; payload: any; credentials: any; task: any; status: any } | null>
  /** run a dead letter again: as a rerun, or past the deadline as a new task that refers to the old one; returns the status of the task that is to run */
  redrive(arguments: { taskId: string }): Promise<any>
  /** redrive() up to that many dead letters of a queue, in the order in which they failed, skipping those that are locked or that a rule refuses; returns how many */
  redriveQueue(arguments: { taskQueueId: string; max?: number | null }): Promise<number>
  /** resolve a running run as completed, with a result for result(); returns the status of the task */
  reportCompleted(arguments: { taskId: string; runId: number; result?: Json | null; credentials?: Json | null }): Promise<any>
  /** resolve a running run as exception, with error, error_message, retry_delay and retries_left as report_failed() has; by default worker-shutdown and intermittent-task are retried while retries are left */
  reportException(arguments: { taskId: string; runId: number; reason: ExceptionReason; error?: Json | null; retryDelay?: Interval | null; retriesLeft?: number | null; errorMessage?: string | null; credentials?: Json | null }): Promise<any>
  /** resolve a running run as failed, with an error, any JSON, and an error_message, which are kept as {message, details} if there is a message; retry_delay and retries_left override the policy for the next attempts; returns the status of the task */
  reportFailed(arguments: { taskId: string; runId: number; error?: Json | null; retryDelay?: Interval | null; retriesLeft?: number | null; errorMessage?: string | null; credentials?: Json | null }): Promise<any>
  /** a task group as a page of HTML that needs no other file: progress, failures, graph and runs */
  reportHtml(arguments: { taskGroupId: string; maxNodes?: number | null }): Promise<string>
  /** show how far a running run is: done of total, in any unit, or NULL; stored once a second at most; returns the status of the task */
  reportProgress(arguments: { taskId: string; runId: number; done: number; total: number; message?: string | null; credentials?: Json | null }): Promise<any>
  /** what rerun_task() would do, without doing it: a row for each task that would get a run (rerun), wait again (wait), wait as before (waits), stay as it is (left), or make it refuse (refused), and why */
  rerunPlan(arguments: { taskId: string; deadline?: Interval | null; downstream?: boolean | null }): Promise<{ task_id: string | null; state: string | null; action: string | null; why: string | null }[]>
  /** add a pending run to a resolved task, with a new deadline from now if one is given; downstream: the resolved tasks that depend on it wait for it again; returns its status */
  rerunTask(arguments: { taskId: string; deadline?: Interval | null; downstream?: boolean | null }): Promise<any>
  /** make the pending or delayed run of a task claimable at that time, NULL: now; returns its status */
  rescheduleTask(arguments: { taskId: string; runAt?: Date | string | null }): Promise<any>
  /** resolve many runs, each as its report says: [{taskId, runId, reason, result, error, errorMessage, retryDelay, retriesLeft, credentials}]; returns an outcome for each instead of raising an error */
  resolve(arguments: { reports: Json }): Promise<{ task_id: string; run_id: number; outcome: string }[]>
  /** resolve many runs for one reason; returns an outcome for each instead of raising an error */
  resolve(arguments: { taskIds: string[]; runIds: number[]; reason?: string | null; credentials?: Json | null }): Promise<{ task_id: string; run_id: number; outcome: string }[]>
  /** resolve runs as resolve(reports) does, then claim up to that many as claim_work() does; returns first an outcome for each report, then the claims */
  resolveAndClaim(arguments: { reports: Json; taskQueueId: string; workerGroup?: string | null; workerId?: string | null; tasks?: number | null; claimFor?: Interval | null; definition?: boolean | null }): Promise<{ task_id: string; run_id: number; outcome: string; worker_group: string | null; worker_id: string; taken_until: Date; payload: any; credentials: any; task: any; status: any }[]>
  /** the result of the last run, as given to report_completed(), or the output given to skip_task(); NULL if there is none */
  result(arguments: { taskId: string }): Promise<any>
  /** let a recurring task create tasks again, and make its job in pg_cron again if that is missing */
  resumeCron(arguments: { name: string; owner?: string | null }): Promise<{ name: string; schedule: string; active: boolean; owner: string; job_id: number | null; command: string | null }[]>
  /** hand out tasks of a paused queue again, first to the workers that wait */
  resumeQueue(arguments: { taskQueueId: string }): Promise<any>
  /** rerun the tasks of a group that ended without success for these reasons, by default any but canceled, with a new deadline from now if one is given; downstream: what depends on them waits for them again; returns how many tasks run again or wait again */
  retryTaskGroup(arguments: { taskGroupId: string; deadline?: Interval | null; reasons?: string[] | null; downstream?: boolean | null }): Promise<number>
  /** revoke what grant_queue() with the same arguments has granted, and nothing that another grant gives as well */
  revokeQueue(arguments: { role: string; taskQueueId: string; access: Access }): Promise<void>
  /** revoke scopes that were granted to a role, each as it was granted */
  revokeScopes(arguments: { role: string; scopes: string[] }): Promise<void>
  /** sign credentials with a new secret from now on; those of the claims that are out, and what on_group_resolved() has registered with them, stay valid, unless revoke is true */
  rotateSecret(arguments?: { revoke?: boolean | null }): Promise<void>
  /** create a task of a recurring task now, apart from its schedule; returns its id, or NULL: skipped, because the last one is unresolved */
  runCronNow(arguments: { name: string; owner?: string | null }): Promise<string>
  /** have pg_cron create a task at each time of a schedule, as enqueue does, or change that; NULL: no deadline, and the default of enqueue of all else; returns one row */
  scheduleCron(arguments: { name: string; schedule: string; taskQueueId: string; payload?: Json | null; taskGroupId?: string | null; dependencies?: string[] | null; requires?: Requires | null; priority?: Priority | null; retries?: number | null; deadline?: Interval | null; expires?: Interval | null; delay?: Interval | null; routes?: string[] | null; scopes?: string[] | null; tags?: Json | null; extra?: Json | null; schedulerId?: string | null; projectId?: string | null; policy?: Json | null; retry?: number | null; overlap?: Overlap | null }): Promise<{ name: string; schedule: string; active: boolean; owner: string; job_id: number | null; command: string | null }[]>
  /** make an unscheduled task pending regardless of its dependencies; returns its status */
  scheduleTask(arguments: { taskId: string }): Promise<any>
  /** seal a group permanently, so that no more tasks can be created in it */
  sealTaskGroup(arguments: { taskGroupId: string }): Promise<any>
  /** change settings of a queue: limits, timeouts, retention, default policy; null removes one; returns all */
  setQueue(arguments: { taskQueueId: string; settings: Json }): Promise<any>
  /** resolve an unscheduled or pending task as completed, skipped, so that its dependents go on; output is its result; returns its status */
  skipTask(arguments: { taskId: string; output?: Json | null }): Promise<any>
  /** a new slugid, which begins with the time unless tq.ordered_ids is off */
  slugid(): Promise<string>
  /** the same; false: one that is random as a whole */
  slugid(arguments: { ordered: boolean }): Promise<string>
  /** the slugid of a name: the same for the same name, always and everywhere */
  stableSlugid(arguments: { name: string }): Promise<string>
  /** the task status structure: state, retriesLeft, runs */
  status(arguments: { taskId: string }): Promise<any>
  /** status of each of these tasks; unknown ids are left out */
  statuses(arguments: { taskIds: string[] }): Promise<{ task_id: string; status: any }[]>
  /** create a durable subscription, or bind it to another exchange */
  subscribe(arguments: { name: string; exchange: string; pattern?: string | null }): Promise<void>
  /** the task definition, with every default filled in */
  task(arguments: { taskId: string }): Promise<any>
  /** runs that have ended, by queue and name of their task, on the days between these times: how many, and how long they waited and took; name is NULL for all further names of a queue together */
  taskNameStats(arguments?: { queue?: string | null; since?: Date | string | null; until?: Date | string | null }): Promise<{ task_queue_id: string | null; name: string | null; completed: number | null; failed: number | null; exception: number | null; wait_p50: Duration | null; wait_p95: Duration | null; wait_p99: Duration | null; run_p50: Duration | null; run_p95: Duration | null; run_p99: Duration | null }[]>
  /** pendingTasks and claimedTasks of a queue */
  taskQueueCounts(arguments: { taskQueueId: string }): Promise<any>
  /** the policy that corresponds to a Taskbroker activation */
  taskbrokerPolicy(arguments: { activation: Json }): Promise<any>
  /** the state of a task as a Taskbroker status */
  taskbrokerStatus(arguments: { taskId: string }): Promise<string>
  /** definition of each of these tasks; unknown ids are left out */
  tasks(arguments: { taskIds: string[] }): Promise<{ task_id: string; task: any }[]>
  /** one screen for \watch: health, queues, workers, groups in progress and the progress of running tasks, in lines of at most 98 characters */
  top(arguments?: { maxRows?: number | null }): Promise<string[]>
  /** what has ended of a task group, as a trace in the JSON of OTLP: tasks, their waits and runs */
  trace(arguments: { taskGroupId: string }): Promise<any>
  /** what has ended of a task, as a trace in the JSON of OTLP */
  traceTask(arguments: { taskId: string }): Promise<any>
  /** remove a binding; also disables a default channel */
  unbind(arguments: { channel: string; exchange: string; pattern?: string | null }): Promise<void>
  /** end a recurring task; the tasks that it has created stay */
  unscheduleCron(arguments: { name: string; owner?: string | null }): Promise<{ name: string; schedule: string; active: boolean; owner: string; job_id: number | null; command: string | null }[]>
  /** drop a durable subscription */
  unsubscribe(arguments: { name: string }): Promise<void>
  /** one pass of maintenance: deadlines, timeouts, expired claims, delayed runs, expiry, and, outside of a transaction block, publication */
  upkeep(): Promise<{ step: string | null; tasks: number | null }[]>
  /** wait until a task is resolved, without holding a snapshot; result is its state, blocked if it can never start, or unresolved when the time is over */
  waitForTask(arguments: { taskId: string; wait?: Interval | null }): Promise<{ result: string | null }>
  /** wait until no task of a group is unresolved, without holding a snapshot; result is its outcome, blocked if what is left can never start, or unresolved when the time is over */
  waitForTaskGroup(arguments: { taskGroupId: string; wait?: Interval | null }): Promise<{ result: string | null }>
  /** sleep until a task of the queue can be claimed, at most that long, at most an hour; holds no snapshot, so not in a transaction block */
  waitForWork(arguments: { taskQueueId: string; wait?: Interval | null }): Promise<void>
  /** sleep until a task of any of these queues, or patterns like app/*, can be claimed; the rest as for one queue */
  waitForWork(arguments: { taskQueueIds: string[]; wait?: Interval | null }): Promise<void>
  /** why a task does not move, or how it ended; and what to do */
  why(arguments: { taskId: string }): Promise<{ reason: string | null; detail: string | null; advice: string | null }[]>
  /** the channel that is notified when a running run is taken from this worker: canceled, expired, timed out, removed or deleted */
  workerChannel(arguments: { workerGroup: string; workerId: string }): Promise<string>
  /** resolve the runs of a worker that is gone, or of those whose worker_id begins like that, as worker-shutdown, so that they are retried; the reason becomes their error */
  workerRemoved(arguments: { taskQueueId: string; workerGroup: string; workerId: string; reason?: string | null }): Promise<{ task_id: string; run_id: number; outcome: string }[]>
}
