// What the pages do with a script: copy ids, show times in the reader's zone and as they
// pass, tick all rows, go on with a search, and replace in place what changes.
(() => {
	'use strict';

	const token = document.querySelector('meta[name=token]').content;
	const live = document.getElementById('live');

	// ---- times ----

	const units = [['d', 86400, 'h', 3600], ['h', 3600, 'min', 60], ['min', 60, 's', 1]];

	const duration = seconds => {
		for (const [name, length, part, small] of units) {
			if (seconds < length) continue;
			const rest = Math.floor(seconds % length / small);
			return `${Math.floor(seconds / length)} ${name}${rest && seconds < 100 * length ? ` ${rest} ${part}` : ''}`;
		}
		return `${Math.floor(seconds)} s`;
	};

	// of the reader's clock
	const skew = Math.round(Date.now() / 1000 - Number(document.querySelector('meta[name=present]').content)) * 1000;
	const tick = root => {
		for (const time of root.querySelectorAll('time')) {
			const at = new Date(time.dateTime);
			const seconds = (Date.now() - skew - at) / 1000;
			time.title = at.toLocaleString(undefined, { dateStyle: 'medium', timeStyle: 'long' });
			time.textContent = Math.abs(seconds) < 1 ? 'now' : seconds > 0 ? `${duration(seconds)} ago` : `in ${duration(-seconds)}`;
		}
	};

	// times of charts, which stand still: of an axis, or the first line of what is shown on hover
	const clock = root => {
		for (const mark of root.querySelectorAll('svg [data-at]')) {
			const at = new Date(mark.dataset.at * 1000);
			const isAxis = mark.localName === 'text';
			const days = 'days' in mark.closest('svg').dataset;
			const text = at.toLocaleString(undefined, {
				hour: '2-digit', minute: '2-digit', ...(days || !isAxis) && { day: 'numeric', month: 'short' }, ...!isAxis && { timeZoneName: 'short' },
			});
			if (isAxis) mark.textContent = text;
			else mark.firstChild.textContent = mark.firstChild.textContent.replace(/^.*/, () => text);
		}
	};

	// ---- what is replaced ----

	// Makes one tree like another, and leaves what the reader has opened, ticked or chosen.
	const merge = (old, young) => {
		if (old.nodeType !== young.nodeType || old.nodeName !== young.nodeName) {
			old.replaceWith(young);
			return;
		}
		if (old.nodeType !== Node.ELEMENT_NODE) {
			if (old.nodeValue !== young.nodeValue) old.nodeValue = young.nodeValue;
			return;
		}
		for (const { name } of [...old.attributes]) if (!young.hasAttribute(name) && name !== 'open') old.removeAttribute(name);
		for (const { name, value } of young.attributes) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
		mergeChildren(old, young);
	};

	// A row is known by its head, and moved with what was ticked in it.
	const keyOf = row => {
		const head = row.querySelector('th');
		return head?.querySelector('time')?.dateTime ?? head?.querySelector('[title]')?.title ?? head?.textContent;
	};

	const mergeRows = (old, young) => {
		const wanted = [...young.rows];
		const keys = new Set(wanted.map(keyOf));
		const known = new Map([...old.rows].map(row => [keyOf(row), row]));
		for (const row of [...old.rows]) if (!keys.has(keyOf(row))) row.remove();
		wanted.forEach((row, i) => {
			const same = known.get(keyOf(row));
			known.delete(keyOf(row));
			if (old.rows[i] !== (same ?? row)) old.insertBefore(same ?? row, old.rows[i] ?? null);
			if (same) merge(same, row);
		});
		while (old.rows.length > wanted.length) old.lastChild.remove();
	};

	const mergeChildren = (old, young) => {
		if (old.localName === 'tbody') {
			mergeRows(old, young);
			return;
		}
		const wanted = [...young.childNodes];
		while (old.childNodes.length > wanted.length) old.lastChild.remove();
		wanted.forEach((node, i) => (i < old.childNodes.length ? merge(old.childNodes[i], node) : old.append(node)));
	};

	const prepare = root => {
		for (const button of root.querySelectorAll('button.copy')) button.hidden = false;
		for (const box of root.querySelectorAll('input.all')) box.hidden = false;
		for (const input of root.querySelectorAll('input[name=token]')) input.value = token;
		tick(root);
		clock(root);
	};

	const replace = text => {
		const end = text.indexOf('\n');
		const region = document.getElementById(end < 0 ? text : text.slice(0, end));
		if (!region) return;
		const template = document.createElement('template');
		template.innerHTML = end < 0 ? '' : text.slice(end + 1);
		prepare(template.content);
		const focused = document.activeElement;
		mergeChildren(region, template.content);
		if (focused.isConnected) focused.focus({ preventScroll: true });
	};

	// ---- the stream ----

	let source;

	const say = text => { if (live.textContent !== text) live.textContent = text; };

	const end = () => {
		source?.close();
		source = undefined;
	};

	const logIn = () => {
		end();
		say('The session has ended. ');
		const link = document.createElement('a');
		link.href = location.href;
		link.textContent = 'Log in again';
		live.append(link);
	};

	const begin = () => {
		if (source || document.hidden) return;
		source = new EventSource(`/live?path=${encodeURIComponent(location.pathname + location.search)}`);
		source.addEventListener('region', event => replace(event.data));
		source.addEventListener('good', () => say('Live'));
		source.addEventListener('trouble', event => say(`Not live: ${event.data}`));
		source.addEventListener('login', logIn);
		source.onerror = () => (source.readyState === EventSource.CLOSED ? logIn() : say('Not live: tries to connect'));
	};

	// A search whose time was over goes on, until there is a page of rows; its link does it without a script.
	const searchOn = async () => {
		for (let i = 0; i < 50; i++) {
			const more = document.querySelector('.more:has([data-on])');
			const body = document.querySelector('main tbody');
			if (!more || !body || body.rows.length >= 100) return;
			const answer = await fetch(more.querySelector('a').href);
			if (!answer.ok || answer.redirected) return;
			const found = new DOMParser().parseFromString(await answer.text(), 'text/html').querySelector('main');
			prepare(found);
			body.append(...found.querySelectorAll('tbody tr'));
			more.replaceWith(...found.querySelectorAll('.more'));
		}
	};

	document.addEventListener('change', event => {
		if (!event.target.matches('input.all')) return;
		for (const box of event.target.closest('table').querySelectorAll('input[name=pick]')) box.checked = event.target.checked;
	});

	document.addEventListener('click', async event => {
		const button = event.target.closest('button.copy');
		if (!button) return;
		await navigator.clipboard.writeText(button.dataset.copy);
		button.classList.add('done');
		setTimeout(() => button.classList.remove('done'), 1500);
	});

	prepare(document);
	document.querySelector('nav [aria-current]')?.scrollIntoView({ inline: 'center', block: 'nearest' });
	searchOn();
	setInterval(() => tick(document), 1000);
	if (document.body.classList.contains('has-live')) {
		begin();
		document.addEventListener('visibilitychange', () => (document.hidden ? end() : begin()));
		addEventListener('pagehide', end);
	}
})();
