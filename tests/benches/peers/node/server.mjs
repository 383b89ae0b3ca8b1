// A server with the TypeScript SDK and its fastest settings, without a sandbox: the low-level server class, cached
// bodies, and one JSON answer for each request. The benches compare belljar with this server.
//
// `server.mjs stdio FILE` serves stdio. `server.mjs http FILE` serves HTTP on a free port, and prints the address to
// standard error.

import { createServer } from 'node:http';
import { readFile } from 'node:fs/promises';
import { localhostHostValidation, localhostOriginValidation, toNodeHandler } from '@modelcontextprotocol/node';
import { createMcpHandler, Server } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';

const [transport, file] = process.argv.slice(2);
const cache = new Map();

const contents = async (uri) => {
    if (uri === 'bench://file') {
        return { uri, mimeType: 'text/plain', text: await readFile(file, 'utf8') };
    }
    if (!cache.has(uri)) {
        const [kind, size] = uri.replace('bench://', '').split('/');
        const body = kind === 'text' ? { mimeType: 'text/plain', text: 'x'.repeat(Number(size)) }
            : { mimeType: 'application/octet-stream', blob: Buffer.alloc(Number(size), 0xa5).toString('base64') };
        cache.set(uri, { uri, ...body });
    }
    return cache.get(uri);
};

const resources = Array.from({ length: 100 }, (_, at) => {
    const name = `n/${String(at + 1).padStart(6, '0')}`;
    return { uri: `bench://${name}`, name };
});

const make = () => {
    const server = new Server({ name: 'bench', version: '1.0.0' }, { capabilities: { resources: {} } });
    server.setRequestHandler('resources/read', async ({ params }) => ({ contents: [await contents(params.uri)] }));
    server.setRequestHandler('resources/list', async () => ({ resources }));
    return server;
};

if (transport === 'stdio') {
    serveStdio(make);
} else {
    const handle = toNodeHandler(createMcpHandler(make, { responseMode: 'json' }));
    const [hostIsFine, originIsFine] = [localhostHostValidation(), localhostOriginValidation()];
    const server = createServer((request, response) => {
        if (hostIsFine(request, response) && originIsFine(request, response)) {
            handle(request, response);
        }
    });
    server.listen(0, '127.0.0.1', () => console.error(`listening on http://127.0.0.1:${server.address().port}/mcp`));
}
