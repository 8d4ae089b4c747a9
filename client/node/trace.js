// trace.js: spans of OpenTelemetry, if @opentelemetry/api can be imported and has a provider.
import { createRequire } from 'node:module'

let api = null                  // by require(): a module that awaits at its top cannot be required itself
try { api = createRequire(import.meta.url)('@opentelemetry/api') } catch {}

const tracer = () => api.trace.getTracer('tq-postgres')

/** Whether there is a provider: a span of none has no id.  One that does not end goes nowhere. */
export const isTraced = () => api !== null && api.isSpanContextValid(tracer().startSpan('tq', { root: true }).spanContext())

/** Returns tags with the traceparent of the span that is active. */
export function withParent (tags) {
  const span = api?.trace.getSpanContext(api.context.active())
  if (!span || !api.isSpanContextValid(span)) return tags
  return { traceparent: `00-${span.traceId}-${span.spanId}-0${span.traceFlags & 1}`, ...tags }
}

function parentOf (task) {
  const [, traceId, spanId, flags] = /^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/.exec(task?.tags?.traceparent ?? '') ?? []
  return traceId && { traceId, spanId, traceFlags: Number(`0x${flags}`) & 1, isRemote: true }
}

/** Does the work of a run in a span: a child of the producer's, of a retry one that links to it. */
export function inSpan (run, work) {
  const parent = parentOf(run.task)
  const child = parent && run.runId === 0
  const context = child ? api.trace.setSpanContext(api.ROOT_CONTEXT, parent) : api.ROOT_CONTEXT
  const options = {
    kind: api.SpanKind.CONSUMER,
    links: parent && !child ? [{ context: parent }] : [],
    attributes: { 'messaging.system': 'tq', 'messaging.operation.name': 'process', 'messaging.destination.name': run.queue, 'messaging.message.id': run.taskId, 'tq.run_id': run.runId },
  }
  return tracer().startActiveSpan(`process ${run.queue}`, options, context, async (span) => {
    try {
      return await work()
    } catch (error) {
      span.recordException(error)
      span.setStatus({ code: api.SpanStatusCode.ERROR, message: error?.message })
      throw error
    } finally {
      span.end()
    }
  })
}
