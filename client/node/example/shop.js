// shop.js: an order sends a mail, and asks for an answer a day later.
import { Retry, tq } from 'tq-postgres'

export async function order (client, { number, to }) {
  await tq(client).enqueue('shop/mail', { order: number, to }, { retries: 3 })
  await tq(client).enqueue('shop/question', { order: number }, { delay: '1 day' })
}

export const mailer = (send) => async ({ order: number, to }) => {
  const answer = await send(to, `Your order ${number}`)
  if (answer === 'busy') throw new Retry('5 min')
  return { sent: answer }
}
