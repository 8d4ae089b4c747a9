// What the pages do with a script: copy ids, show times in the reader's zone.
(() => {
	'use strict';

	const prepare = root => {
		for (const button of root.querySelectorAll('button.copy')) button.hidden = false;
		for (const time of root.querySelectorAll('time')) time.title = new Date(time.dateTime).toLocaleString();
	};

	document.addEventListener('click', async event => {
		const button = event.target.closest('button.copy');
		if (!button) return;
		await navigator.clipboard.writeText(button.dataset.copy);
		button.classList.add('done');
		setTimeout(() => button.classList.remove('done'), 1500);
	});

	prepare(document);
})();
