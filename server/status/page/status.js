// Draws /status.json. No part of the page is made from text as HTML: names are those of callers.
'use strict';

const PERIOD = 5000;       // of the overview; the server's steps are as long
const SLOW_PERIOD = 10000; // of jobs and matrices
const DASHES = ['', '7 3', '2 3', '9 3 2 3', '4 2', '12 4', '1 3'];
const PHASES = ['receive', 'queue', 'device_to_device', 'host_to_device', 'kernel', 'check', 'device_to_host', 'send'];

const chosen = {by: 'kernels', window: 'latency_minute', jobs: 'slowest', matrices: 'largest'};
const last = {};  // the latest answer of each part
let paused = false;
let loading = false;
let nextSlow = 0;

const $ = (id) => document.getElementById(id);

function node(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

function svg(name, attributes = {}, ...children) {
  const made = document.createElementNS('http://www.w3.org/2000/svg', name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

// Numbers for people.
function number(value) {
  if (value === 0) return '0';
  const size = Math.abs(value);
  if (size >= 1e9) return (value / 1e9).toPrecision(3) + ' G';
  if (size >= 1e6) return (value / 1e6).toPrecision(3) + ' M';
  if (size >= 1e4) return Math.round(value).toLocaleString('en');
  if (size >= 100 || Number.isInteger(value)) return String(Math.round(value));
  return size < 1e-4 ? value.toExponential(1) : String(Number(value.toPrecision(3)));
}

function bytes(value) {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let unit = 0;
  while (value >= 1024 && unit < 4) { value /= 1024; ++unit; }
  return `${unit ? Number(value.toPrecision(3)) : value} ${units[unit]}`;
}

function seconds(value) {
  if (value === 0) return '–';
  for (const [unit, size] of [['s', 1], ['ms', 1e-3], ['µs', 1e-6]]) {
    if (value >= size) return `${Number((value / size).toPrecision(3))} ${unit}`;
  }
  return `${Math.round(value * 1e9)} ns`;
}

function age(value) {
  if (value < 120) return `${Math.round(value)} s`;
  if (value < 7200) return `${Math.round(value / 60)} min`;
  return value < 172800 ? `${Math.round(value / 3600)} h` : `${Math.round(value / 86400)} days`;
}

const clock = (text) => text.slice(11, 19);
const named = (text) => text || '(no name)';

// A table. `columns`: [heading, value of a row, class]. The value is text, or a node.
function table(id, caption, columns, rows, nothing) {
  const place = $(id);
  if (rows.length === 0) {
    place.replaceChildren(node('p', {class: 'empty'}, nothing));
    return;
  }
  const head = node('tr');
  for (const [heading, , kind] of columns) head.append(node('th', {scope: 'col', class: kind || ''}, heading));
  const body = node('tbody');
  for (const row of rows) {
    const line = node('tr');
    columns.forEach(([, value, kind], index) => {
      const cell = index === 0 ? node('th', {scope: 'row'}) : node('td', {class: kind || ''});
      cell.append(value(row));
      line.append(cell);
    });
    body.append(line);
  }
  const made = node('table', {}, node('caption', {}, caption), node('thead', {}, head), body);
  let box = place.querySelector('.scroll');
  if (!box) {
    box = node('div', {class: 'scroll', tabindex: '0', role: 'region', 'aria-label': caption});
    place.replaceChildren(box);
  }
  box.replaceChildren(made);  // the box keeps its place and the focus
}

// Parts of a whole side by side: [share, class].
function bar(parts, label) {
  const drawn = svg('svg', {class: 'bar', viewBox: '0 0 100 10', preserveAspectRatio: 'none', role: 'img',
    'aria-label': label}, svg('title', {}, label), svg('rect', {class: 'track', width: 100, height: 10}));
  let x = 0;
  for (const [share, kind] of parts) {
    drawn.append(svg('rect', {class: kind, x, width: Math.max(0, Math.min(share * 100, 100 - x)), height: 10}));
    x += share * 100;
  }
  return drawn;
}

// A round number of at least `value`.
function roundUp(value) {
  if (value <= 0) return 1;
  const unit = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 2.5, 5, 10].find((step) => step * unit >= value) * unit;
}

function chart(id, label, rows, field, history) {
  const width = Math.max($(id).clientWidth, 240), height = 180, left = 46, bottom = 20, top = 8;
  const count = history.all[field].length;
  const most = roundUp(Math.max(...rows.flatMap((row) => row[field])));
  const x = (step) => left + (width - left) * step / (count - 1);
  const y = (value) => top + (height - top - bottom) * (1 - value / most);
  const ends = rows.map((row) => `${named(row.name)} ${number(row[field][count - 1])}`).join(', ');
  const drawn = svg('svg', {class: 'chart', viewBox: `0 0 ${width} ${height}`, role: 'img',
    'aria-label': `${label}, now: ${ends || 'nothing'}`});
  for (const share of [0, 0.5, 1]) {
    drawn.append(svg('line', {class: 'grid', x1: left, x2: width, y1: y(most * share), y2: y(most * share)}),
      svg('text', {class: 'axis', x: left - 6, y: y(most * share) + 4, 'text-anchor': 'end'}, number(most * share)));
  }
  for (const minutes of [10, 5, 0]) {
    drawn.append(svg('text', {class: 'axis', x: x((count - 1) * (1 - minutes / 10)), y: height - 4,
      'text-anchor': minutes === 10 ? 'start' : minutes ? 'middle' : 'end'}, minutes ? `−${minutes} min` : 'now'));
  }
  rows.forEach((row, index) => {
    const points = row[field].map((value, step) => `${x(step).toFixed(1)},${y(value).toFixed(1)}`).join(' ');
    drawn.append(svg('polyline', {class: `curve s${index}`, points, 'stroke-dasharray': DASHES[index]}));
  });
  $(id).replaceChildren(drawn);
}

function legend(id, names, mark) {
  $(id).replaceChildren(...names.map((name, index) => node('li', {},
    svg('svg', {viewBox: '0 0 28 10', 'aria-hidden': 'true'}, mark(index)), name)));
}

function drawRates(history) {
  const curves = history[chosen.by].filter((row) => row.tflops);
  chart('chart-products', 'Products per second', curves, 'products_per_second', history);
  chart('chart-tflops', 'TFLOPS', curves, 'tflops', history);
  legend('legend', curves.map((row) => named(row.name)), (index) =>
    svg('line', {class: `curve s${index}`, x1: 0, x2: 28, y1: 5, y2: 5, 'stroke-dasharray': DASHES[index]}));
}

function drawRows(status) {
  const {history} = status;
  const now = (row, field) => (row[field] ? number(row[field][row[field].length - 1]) : '');
  const window = history.step_seconds * history.all.tflops.length;
  const common = [
    ['products/s now', (row) => now(row, 'products_per_second'), 'number'],
    ['TFLOPS now', (row) => now(row, 'tflops'), 'number'],
    ['products', (row) => number(row.products), 'number'],
    ['TFLOP', (row) => number(row.tflop), 'number'],
    ['failed jobs', (row) => number(row.failed), 'number']];
  table('table-kernels', 'Kernels in the last ten minutes',
    [['kernel', (row) => named(row.name)], ...common,
      ['TFLOPS in the kernel', (row) => (row.seconds ? number(row.tflop / row.seconds) : ''), 'number'],
      ['time in it', (row) => seconds(row.seconds), 'number']],
    history.kernels, 'No job has ended in the last ten minutes.');
  const found = (name) => history.devices.find((row) => row.name === name) ||
    {products: 0, tflop: 0, failed: 0, seconds: 0};
  const devices = status.devices.map((device) => ({...device, ...found(device.name)}));
  table('table-devices', 'Devices',
    [['device', (row) => row.name], ...common,
      ['busy with jobs', (row) => `${number(100 * Math.min(1, row.seconds / window))} %`, 'number'],
      ['queued', (row) => number(row.queued_jobs), 'number'],
      ['wait', (row) => `${seconds(row.queue_wait_seconds)} of ${seconds(row.queue_wait_limit_seconds)}`, 'number'],
      ['copies of matrices', (row) => bytes(row.replica_bytes), 'number'],
      ['health', (row) => node('span', {class: row.health === 'ok' ? '' : 'bad'}, row.health), 'text']],
    devices, 'No device.');
}

// From 1 µs to 100 s on a scale of powers of ten.
const onScale = (value) => (value > 0 ? Math.min(1, Math.max(0, (Math.log10(value) + 6) / 8)) : 0);

function latencyBar(row) {
  const [low, middle, high] = [row.p50, row.p90, row.p99].map(onScale);
  return bar([[low, 'track'], [Math.max(middle - low, 0.01), 'f0'], [Math.max(high - middle, 0.01), 'f1']],
    `p50 ${seconds(row.p50)}, p90 ${seconds(row.p90)}, p99 ${seconds(row.p99)}`);
}

function drawLatency(history) {
  table('table-latency', 'Estimated from buckets a quarter of a doubling wide',
    [['phase', (row) => row.phase.replaceAll('_', ' ')], ['jobs', (row) => number(row.jobs), 'number'],
      ['p50', (row) => seconds(row.p50), 'number'], ['p90', (row) => seconds(row.p90), 'number'],
      ['p99', (row) => seconds(row.p99), 'number'], ['1 µs to 100 s', latencyBar]],
    history[chosen.window].filter((row) => row.jobs > 0), 'No job in this time.');
}

function drawPools(status) {
  const show = (row, value) => (row.unit === 'bytes' ? bytes(value) : number(value));
  table('table-pools', 'Used now',
    [['pool', (row) => row.name], ['device', (row) => row.device], ['used', (row) => show(row, row.used), 'number'],
      ['bound', (row) => show(row, row.limit), 'number'],
      ['share', (row) => {
        const share = row.limit ? row.used / row.limit : 0;
        const text = `${number(Number((100 * share).toFixed(1)))} %`;
        return node('span', {}, bar([[share, share > 0.9 ? 'f5' : 'f0']], text), ` ${text}`);
      }]],
    status.pools, 'None.');
}

function drawQueue(status) {
  const waiting = status.devices.flatMap((device) => device.waiting.map((row) => ({...row, device: device.name})));
  const total = status.devices.reduce((sum, device) => sum + device.waiting_callers, 0);
  table('table-queue', `Waiting now: ${total} callers, those with the most jobs (#N is a connection)`,
    [['caller', (row) => named(row.caller)], ['device', (row) => row.device],
      ['jobs waiting', (row) => number(row.jobs), 'number'],
      ['their device time', (row) => seconds(row.device_seconds), 'number']],
    waiting, 'No job waits for a stream.');
  table('table-callers', 'Callers in the last ten minutes',
    [['caller', (row) => named(row.name)], ['jobs', (row) => number(row.jobs), 'number'],
      ['failed', (row) => number(row.failed), 'number'], ['products', (row) => number(row.products), 'number'],
      ['TFLOP', (row) => number(row.tflop), 'number'], ['device time', (row) => seconds(row.seconds), 'number']],
    status.history.callers, 'No job has ended in the last ten minutes.');
}

function drawRest(status) {
  table('table-connections', 'Open now, and since the start',
    [['listener', (row) => row.listener], ['open', (row) => number(row.open), 'number'],
      ['bound', (row) => number(row.limit), 'number'], ['handshakes', (row) => number(row.handshaking), 'number'],
      ['calls', (row) => number(row.calls), 'number'], ['accepted', (row) => number(row.accepted), 'number'],
      ['refused', (row) => number(row.refused), 'number']],
    status.connections, 'None.');
  table('table-benchmarks', 'It slows jobs, and they slow it',
    [['measures', (row) => row.subject || 'begins'], ['caller', (row) => named(row.caller)],
      ['device', (row) => row.device], ['for', (row) => age(row.seconds) + (row.ending ? ', ending' : ''), 'number']],
    status.benchmarks, 'None.');
  const tuning = status.tuning;
  const rows = [['tables', tuning.tables || 'none'], ['found while idle', tuning.idle_tuning || 'off'],
    ['entries', number(tuning.entries)], ['of these, used here', number(tuning.used)],
    ['measured with other versions', number(tuning.other_versions)],
    ['kernels that cannot be used', tuning.skipped_count ? `${tuning.skipped_count}: ${tuning.skipped.join(', ')}` : '0'],
    ['products that are worth tuning', number(tuning.untuned_products)]];
  table('table-tuning', 'As read last', [['what', (row) => row[0]], ['value', (row) => row[1], 'text']], rows, '');
}

function phaseBar(job) {
  const total = Math.max(job.seconds.total, PHASES.reduce((sum, phase) => sum + job.seconds[phase], 0));
  const label = PHASES.filter((phase) => job.seconds[phase] > 0)
    .map((phase) => `${phase.replaceAll('_', ' ')} ${seconds(job.seconds[phase])}`).join(', ');
  return node('span', {}, bar(PHASES.map((phase, index) =>
    [total ? job.seconds[phase] / total : 0, `f${index}`]), label || 'none'));
}

function drawJobs() {
  const failed = chosen.jobs === 'failed';
  const outcome = failed ?
    ['error', (job) => node('span', {class: 'bad'}, `${job.code}: ${job.error}`), 'text'] :
    ['kernel', (job) => job.kernel];
  const phases = PHASES.filter((phase) => ['receive', 'queue', 'kernel', 'send'].includes(phase));
  table('table-jobs', failed ? 'The latest that failed' : 'The slowest of the last ten minutes',
    [['job', (job) => `#${job.number}`], ['ended', (job) => clock(job.ended)], outcome,
      ['m × n × k', (job) => (job.m ? `${job.m} × ${job.n} × ${job.k}` + (job.products > 1 ? `, ${job.products} products` : '') : '')],
      ['types', (job) => job.types], ['device', (job) => job.device], ['caller', (job) => named(job.caller)],
      ['total', (job) => seconds(job.seconds.total), 'number'],
      ...phases.map((phase) => [phase, (job) => seconds(job.seconds[phase]), 'number']),
      ['phases', phaseBar], ['TFLOPS', (job) => (job.tflops ? number(job.tflops) : ''), 'number'],
      ['kernel chosen', (job) => job.why, 'text']],
    last.jobs[chosen.jobs], failed ? 'No job has failed.' : 'No job has ended in the last ten minutes.');
  legend('phases', PHASES.map((phase) => phase.replaceAll('_', ' ')), (index) =>
    svg('rect', {class: `f${index}`, width: 28, height: 10}));
}

function drawMatrices() {
  table('table-matrices', `${number(last.matrices.count)} are resident. The first of them`,
    [['matrix', (row) => row.name || row.id], ['shape', (row) => row.shape],
      ['bytes', (row) => bytes(row.bytes), 'number'], ['uses', (row) => number(row.uses), 'number'],
      ['in use', (row) => number(row.in_use), 'number'], ['device', (row) => row.device],
      ['copies', (row) => number(row.copies), 'number'],
      ['owner', (row) => named(row.owner) + (row.shared ? ', shared' : '')]],
    last.matrices[chosen.matrices], 'None.');
}

function drawCatalogue() {
  const words = $('filter').value.toLowerCase().split(/\s+/).filter(Boolean);
  const all = last.kernels || [];
  const rows = all.filter((row) => {
    const text = `${row.name} ${row.family} ${row.types} ${row.summary}`.toLowerCase();
    return words.every((word) => text.includes(word));
  });
  table('table-catalogue', `${rows.length} of ${all.length} kernels (types: operands:result)`,
    [['kernel', (row) => row.name], ['family', (row) => row.family], ['types', (row) => row.types, 'text'],
      ['devices', (row) => row.devices || node('span', {class: 'text'}, `none: ${row.unavailable}`), 'text'],
      ['summary', (row) => row.summary, 'text']],
    rows, 'No kernel has these words.');
}

function drawTiles(status) {
  const {history} = status;
  const end = (list) => list[list.length - 1];
  const total = history.latency_minute.find((row) => row.phase === 'total');
  const pool = (name) => status.pools.find((row) => row.name === name);
  const grpc = status.connections.find((row) => row.listener === 'grpc');
  const queued = pool('queued jobs'), matrices = pool('matrices');
  const sick = status.devices.filter((device) => device.health !== 'ok').length;
  const tiles = [
    ['Products/s', number(end(history.all.products_per_second)), ''],
    ['TFLOPS', number(end(history.all.tflops)), ''],
    ['p50, last minute', seconds(total.p50), ''],
    ['p99, last minute', seconds(total.p99), ''],
    ['Jobs waiting', number(queued.used), `of ${number(queued.limit)}`],
    ['Failed, 10 min', number(history.all.failed), `of ${number(history.all.jobs)}`, history.all.failed > 0],
    ['Connections', number(grpc.open), `of ${number(grpc.limit)}`],
    ['Matrices', number(matrices.used), `of ${number(matrices.limit)}`],
    ['Devices', number(status.devices.length), sick ? `${sick} lost` : 'healthy', sick > 0]];
  $('tiles').replaceChildren(...tiles.map(([name, value, more, bad]) => node('div', {}, node('dt', {}, name),
    node('dd', bad ? {class: 'bad'} : {}, value, node('small', {}, more)))));
  $('build').textContent = `${status.version} ${status.commit.slice(0, 9)}, up for ` +
    age((Date.parse(status.now) - Date.parse(status.started)) / 1000);
}

function drawOverview() {
  const status = last.overview;
  drawTiles(status);
  drawRates(status.history);
  drawRows(status);
  drawLatency(status.history);
  drawPools(status);
  drawQueue(status);
  drawRest(status);
}

const DRAW = {by: () => drawRates(last.overview.history), window: () => drawLatency(last.overview.history),
  jobs: drawJobs, matrices: drawMatrices};

function say(text, bad) {
  $('state').textContent = text;
  $('state').className = bad ? 'bad' : '';
}

class Refused extends Error {}

async function load(query) {
  const token = sessionStorage.getItem('gemmd-token');
  const answer = await fetch(`/status.json?${query}`, {
    cache: 'no-store', headers: token ? {Authorization: `Bearer ${token}`} : {}, signal: AbortSignal.timeout(4000)});
  if (answer.status === 401 || answer.status === 403) throw new Refused(await answer.text());
  if (!answer.ok) throw new Error(`${answer.status}: ${await answer.text()}`);
  return answer.json();
}

async function loadKernels() {
  const all = [];
  for (let page = 0; page !== null;) {
    const part = await load(`part=kernels&page=${page}`);
    all.push(...part.kernels);
    page = part.next_page;
  }
  last.kernels = all;
  drawCatalogue();
}

async function refresh() {
  if (loading) return;
  loading = true;
  try {
    last.overview = await load('part=overview');
    $('login').hidden = true;
    $('main').hidden = false;
    drawOverview();
    if (Date.now() >= nextSlow) {
      nextSlow = Date.now() + SLOW_PERIOD - PERIOD / 2;
      last.jobs = await load('part=jobs');
      drawJobs();
      last.matrices = await load('part=matrices');
      drawMatrices();
    }
    if (!last.kernels) await loadKernels();
    say(paused ? 'paused' : `as of ${clock(last.overview.now)} UTC`);
  } catch (error) {
    if (error instanceof Refused) {
      sessionStorage.removeItem('gemmd-token');
      $('main').hidden = true;
      $('login').hidden = false;
      $('refusal').textContent = error.message;
      say('a token is needed', true);
    } else {
      say(`no answer: ${error.message}`, true);
    }
  } finally {
    loading = false;
  }
}

function pause(on) {
  paused = on;
  $('pause').setAttribute('aria-pressed', String(on));
  if (on) say('paused');
  else refresh();
}

$('pause').addEventListener('click', () => pause(!paused));
$('filter').addEventListener('input', drawCatalogue);
$('login').addEventListener('submit', (event) => {
  event.preventDefault();
  sessionStorage.setItem('gemmd-token', $('token').value.trim());
  $('token').value = '';
  nextSlow = 0;
  refresh();
});
for (const [what, draw] of Object.entries(DRAW)) {
  for (const button of document.querySelectorAll(`[data-${what}]`)) {
    button.addEventListener('click', () => {
      chosen[what] = button.dataset[what];
      for (const other of button.parentElement.children) {
        other.setAttribute('aria-pressed', String(other === button));
      }
      draw();
    });
  }
}
document.addEventListener('keydown', (event) => {
  if (event.target.matches('input') || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === '/') {
    event.preventDefault();
    $('filter').focus();
  } else if (event.key === 'p') {
    pause(!paused);
  }
});
addEventListener('resize', () => { if (last.overview) drawRates(last.overview.history); });
document.addEventListener('visibilitychange', () => { if (!document.hidden && !paused) refresh(); });
setInterval(() => { if (!document.hidden && !paused && $('login').hidden) refresh(); }, PERIOD);
refresh();
