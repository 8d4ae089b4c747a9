export default { test: { include: ['*.vitest.js'] } }
