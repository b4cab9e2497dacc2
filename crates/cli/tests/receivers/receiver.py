"""Receivers of profiles, written from the public definitions: Pyroscope's push API (push/v1/push.proto,
by the Connect protocol) and its /ingest, OpenTelemetry's by HTTP and by gRPC.

receiver.py FOLDER PLAN [PORT [CERTIFICATE]]

Prints its ports, HTTP and gRPC. PLAN says how requests are answered, one word each, the last one again
and again: ok, a status such as 400, 429:SECONDS, slow, die, max:BYTES (413 for larger bodies), partial,
moved. What is accepted is decoded and written to FOLDER/accepted, a line of JSON for each profile. Every
request is a line of FOLDER/requests.
"""

import gzip
import http.server
import json
import re
import ssl
import sys
import threading
from concurrent import futures
from urllib.parse import parse_qs, urlsplit

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from opentelemetry.proto.collector.profiles.v1development import profiles_service_pb2 as service
from opentelemetry.proto.collector.profiles.v1development import profiles_service_pb2_grpc as service_grpc

FOLDER, PLAN = sys.argv[1], sys.argv[2].split(',')
PORT = int(sys.argv[3]) if len(sys.argv) > 3 else 0
LOCK = threading.Lock()
FOREVER = threading.Event()


def message_types():
    """Messages of profile.proto and push.proto, as far as they are public and used here."""
    file = descriptor_pb2.FileDescriptorProto(name='x.proto', package='x', syntax='proto3')
    kinds = {'int64': 3, 'uint64': 4, 'bool': 8, 'string': 9, 'bytes': 12}
    for name, fields in {
        'ValueType': '1 type int64, 2 unit int64',
        'Label': '1 key int64, 2 str int64, 3 num int64, 4 num_unit int64',
        'Sample': '1 location_id *uint64, 2 value *int64, 3 label *Label',
        'Mapping': '1 id uint64, 2 memory_start uint64, 3 memory_limit uint64, 4 file_offset uint64, '
                   '5 filename int64, 6 build_id int64, 7 has_functions bool',
        'Line': '1 function_id uint64, 2 line int64',
        'Location': '1 id uint64, 2 mapping_id uint64, 3 address uint64, 4 line *Line, 5 is_folded bool',
        'Function': '1 id uint64, 2 name int64, 3 system_name int64, 4 filename int64, 5 start_line int64',
        'Profile': '1 sample_type *ValueType, 2 sample *Sample, 3 mapping *Mapping, 4 location *Location, '
                   '5 function *Function, 6 string_table *string, 7 drop_frames int64, 8 keep_frames int64, '
                   '9 time_nanos int64, 10 duration_nanos int64, 11 period_type ValueType, 12 period int64, '
                   '13 comment *int64, 14 default_sample_type int64',
        'LabelPair': '1 name string, 2 value string',
        'RawSample': '1 raw_profile bytes, 2 ID string',
        'RawProfileSeries': '1 labels *LabelPair, 2 samples *RawSample',
        'PushRequest': '1 series *RawProfileSeries',
    }.items():
        of = file.message_type.add(name=name)
        for field in fields.split(', '):
            number, field, kind = field.split()
            is_list, kind = kind.startswith('*'), kind.lstrip('*')
            added = of.field.add(name=field, number=int(number), label=3 if is_list else 1)
            if kind in kinds:
                added.type = kinds[kind]
            else:
                added.type, added.type_name = 11, f'.x.{kind}'
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    find = lambda name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f'x.{name}'))
    return find('Profile'), find('PushRequest')


Profile, PushRequest = message_types()


def write(name, value):
    with LOCK, open(f'{FOLDER}/{name}', 'a') as out:
        out.write(json.dumps(value) + '\n')


def of_pprof(raw):
    """Sums by path, the outermost first; every number is followed."""
    raw = gzip.decompress(raw)
    profile = Profile.FromString(raw)
    text = profile.string_table
    assert text[0] == ''
    functions = {of.id: text[of.name] for of in profile.function}
    mappings = {of.id for of in profile.mapping} | {0}
    assert all(location.mapping_id in mappings for location in profile.location)
    lines = {of.id: [functions[line.function_id] for line in of.line] for of in profile.location}
    used, sums, count = set(), {}, len(profile.sample)
    for sample in profile.sample:
        used.update(sample.location_id)
        assert len(sample.value) == len(profile.sample_type) and text[0] == ''
        assert all(text[label.key] and text[label.str] is not None for label in sample.label)
        path = ';'.join(name for id in reversed(sample.location_id) for name in reversed(lines[id]))
        known = sums.setdefault(path, [0] * len(sample.value))
        for at, value in enumerate(sample.value):
            known[at] += value
    assert used == set(lines), 'tables have what samples refer to'
    pair = lambda of: f'{text[of.type]} {text[of.unit]}'
    return {
        'types': [pair(of) for of in profile.sample_type], 'sums': sums, 'samples': count, 'bytes': len(raw),
        'period': [pair(profile.period_type), profile.period],
        'depth': max([len(sample.location_id) for sample in profile.sample], default=0),
        'comments': [text[of] for of in profile.comment], 'time': profile.time_nanos,
    }


def of_otlp(request):
    """The same, for each profile of a request."""
    tables = request.dictionary
    text = tables.string_table
    for table in [tables.location_table, tables.function_table, tables.link_table, tables.attribute_table,
                  tables.stack_table]:
        assert table[0].ByteSize() == 0
    stacks = [list(stack.location_indices) for stack in tables.stack_table]
    name = lambda line: text[tables.function_table[line.function_index].name_strindex]
    lines = [[name(line) for line in location.lines] for location in tables.location_table]
    pair = lambda of: f'{text[of.type_strindex]} {text[of.unit_strindex]}'
    for resource in request.resource_profiles:
        attributes = {of.key: of.value.string_value or of.value.int_value for of in resource.resource.attributes}
        for scope in resource.scope_profiles:
            for profile in scope.profiles:
                sums, depth, times = {}, 0, 0
                for sample in profile.samples:
                    stack = stacks[sample.stack_index]
                    depth, times = max(depth, len(stack)), times + len(sample.timestamps_unix_nano)
                    assert len(sample.timestamps_unix_nano) in [0, len(sample.values)]
                    assert all(text[tables.attribute_table[at].key_strindex] for at in sample.attribute_indices)
                    path = ';'.join(name for at in reversed(stack) for name in reversed(lines[at]))
                    sums.setdefault(path, [0])[0] += sum(sample.values)
                yield {
                    'labels': attributes, 'id': profile.profile_id.hex(), 'types': [pair(profile.sample_type)],
                    'sums': sums, 'samples': len(profile.samples), 'depth': depth, 'times': times,
                    'bytes': request.ByteSize(), 'period': [pair(profile.period_type), profile.period],
                    'name': '', 'time': profile.time_unix_nano,
                }


def accept(path, headers, body):
    """Decodes a request of HTTP, and writes what is in it."""
    url = urlsplit(path)
    kind = headers.get('content-type', '')
    if url.path == '/push.v1.PusherService/Push':
        assert kind == 'application/proto' and headers['connect-protocol-version'] == '1', kind
        for series in PushRequest.FromString(body).series:
            labels = {of.name: of.value for of in series.labels}
            assert len(labels) == len(series.labels) <= 30 and labels['service_name']
            assert all(re.fullmatch('[a-zA-Z_][a-zA-Z0-9_]*', name) for name in labels)
            for sample in series.samples:
                found = of_pprof(sample.raw_profile)
                write('accepted', {'labels': labels, 'id': sample.ID, 'name': labels['__name__'], **found})
    elif url.path == '/ingest':
        query = {name: values[0] for name, values in parse_qs(url.query, strict_parsing=True).items()}
        service_name, labels = re.fullmatch(r'([^{}]+)\{(.*)\}', query['name']).groups()
        labels = dict(pair.split('=') for pair in labels.split(',') if pair)
        boundary = re.fullmatch('multipart/form-data; boundary=(.*)', kind).group(1).encode()
        parts = body.split(b'--' + boundary)
        assert parts[0] == b'' and parts[-1] == b'--\r\n'
        form = {}
        for part in parts[1:-1]:
            head, content = part.split(b'\r\n\r\n', 1)
            form[re.search(rb'name="(.*?)"; filename=', head).group(1).decode()] = content[:-2]
        found = of_pprof(form['profile'])
        config = json.loads(form['sample_type_config'])
        assert all(not config[of.split()[0]].get('cumulative') for of in found['types'])
        write('accepted', {'labels': {'service_name': service_name, **labels}, 'id': boundary.decode(), 'name': '',
                           'query': query, **found})
    elif url.path == '/v1development/profiles':
        assert kind == 'application/x-protobuf' and headers['content-encoding'] == 'gzip', kind
        for found in of_otlp(service.ExportProfilesServiceRequest.FromString(gzip.decompress(body))):
            write('accepted', found)
    else:
        raise ValueError(f'no such path: {path}')


def next_step():
    with LOCK:
        return PLAN.pop(0) if len(PLAN) > 1 else PLAN[0]


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'

    def answer(self, status, body=b'', headers=()):
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self):
        step, length = next_step(), int(self.headers['content-length'])
        write('requests', {'step': step, 'path': self.path, 'length': length,
                           'headers': {name.lower(): value for name, value in self.headers.items()}})
        if step == 'die':
            # In the middle of the body.
            self.rfile.read(min(length, 10) // 2)
            self.close_connection = True
            self.connection.shutdown(2)
            return None
        if step.startswith('slow'):
            FOREVER.wait()
        body = self.rfile.read(length)
        if step.startswith('max:') and length > int(step[4:]):
            return self.answer(413, b'too large')
        if step == 'moved':
            return self.answer(308, headers=[('Location', 'http://elsewhere/')])
        if step == 'echo':
            return self.answer(400, json.dumps(dict(self.headers.items())).encode())
        if step[0].isdigit():
            status, _, after = step.partition(':')
            headers = [('Retry-After', after)] if after else []
            return self.answer(int(status), b'because of the plan', headers)
        accept(self.path, {name.lower(): value for name, value in self.headers.items()}, body)
        answer = service.ExportProfilesServiceResponse()
        if step == 'partial':
            answer.partial_success.rejected_profiles = 1
            answer.partial_success.error_message = 'one is too old'
        return self.answer(200, answer.SerializeToString())

    def log_message(self, *_):
        pass


class Service(service_grpc.ProfilesServiceServicer):
    def Export(self, request, context):
        step = next_step()
        metadata = {pair.key: pair.value for pair in context.invocation_metadata()}
        write('requests', {'step': step, 'path': 'gRPC', 'length': request.ByteSize(), 'headers': metadata})
        codes = {code.value[0]: code for code in grpc.StatusCode}
        if step.startswith('slow'):
            FOREVER.wait()
        if step[0].isdigit():
            code, _, after = step.partition(':')
            if after:
                context.set_trailing_metadata([('grpc-retry-pushback-ms', str(int(float(after) * 1000)))])
            context.abort(codes[int(code)], 'because of the plan')
        for found in of_otlp(request):
            write('accepted', found)
        answer = service.ExportProfilesServiceResponse()
        if step == 'partial':
            answer.partial_success.rejected_profiles = 1
            answer.partial_success.error_message = 'one is too old'
        return answer


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True


http_server = Server(('127.0.0.1', PORT), Handler)
largest = next((int(step[4:]) for step in PLAN if step.startswith('max:')), 64 << 20)
calls = grpc.server(futures.ThreadPoolExecutor(8), options=[('grpc.max_receive_message_length', largest)])
service_grpc.add_ProfilesServiceServicer_to_server(Service(), calls)
if len(sys.argv) > 4:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(sys.argv[4], sys.argv[4])
    http_server.socket = context.wrap_socket(http_server.socket, server_side=True)
    pem = open(sys.argv[4], 'rb').read()
    port = calls.add_secure_port('127.0.0.1:0', grpc.ssl_server_credentials([(pem, pem)]))
else:
    port = calls.add_insecure_port('127.0.0.1:0')
calls.start()
print(http_server.server_port, port, flush=True)
http_server.serve_forever()
