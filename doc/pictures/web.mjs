// web.mjs URL DIRECTORY: pictures of tq-web, of what a demo has at that URL.
//
// `make --web` calls it, with playwright-core in NODE_PATH and Debian's chromium.  Each
// page is taken in the light and the dark theme, as high as it is, 800 pixels at most.
import { createRequire } from 'node:module';
import { join } from 'node:path';

const { chromium } = createRequire(join(process.env.NODE_PATH, 'x.js'))('playwright-core');
const [url, directory] = process.argv.slice(2);

// A page of each name, found by links from others.
async function addresses(page) {
	const first = async (path, selector) => {
		await page.goto(`${url}${path}`);
		return page.locator(selector).first().getAttribute('href', { timeout: 5000 });
	};
	const group = await first('/groups', 'main table a[href^="/group?"]');
	const task = await first('/tasks?state=failed', 'main table a[href^="/task?"]');
	return { queues: '/queues', queue: '/queue?name=shop/mail', task, group, failures: '/failures' };
}

const browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox', '--disable-gpu'] });

for (const colorScheme of ['light', 'dark']) {
	const context = await browser.newContext({ colorScheme, viewport: { width: 1280, height: 800 }, locale: 'en-GB' });
	const page = await context.newPage();
	await page.goto(`${url}/login`);
	await page.fill('#role', 'operator');
	await page.fill('#password', 'operator');
	await Promise.all([page.waitForURL(`${url}/queues`), page.click('button.main')]);
	for (const [name, path] of Object.entries(await addresses(page))) {
		await page.goto(`${url}${path}`, { waitUntil: 'load' });
		await page.waitForFunction(() => [...document.images].every(image => image.complete));
		const height = await page.evaluate(() => Math.min(800, Math.ceil(document.querySelector('footer').getBoundingClientRect().bottom)));
		await page.screenshot({ path: join(directory, `web-${name}-${colorScheme}.png`), clip: { x: 0, y: 0, width: 1280, height } });
	}
	await context.close();
}
await browser.close();
