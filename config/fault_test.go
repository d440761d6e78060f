package config

import (
	"strings"
	"testing"
)

// Every way to be wrong, with the whole text that a person reads.
func TestFaults(t *testing.T) {
	const app = "[[target]]\nname = \"app\"\ntype = \"http\"\nurl = \"http://127.0.0.1:3000/\"\n"
	const acme = "[[installation]]\nid = \"acme\"\ntype = \"socket\"\n[installation.config]\nurl = \"ws://h\"\ntls.name = \"h\"\n"
	const slack = "[[installation]]\nid = \"acme\"\ntype = \"slack\"\n[installation.config]\n"
	for _, c := range []struct{ name, text, want string }{
		// not TOML
		{"a duration without quotes", "[lease]\nttl = 30s\n", `leasehold.toml:2:9: not TOML: strings must be quoted`},
		{"a header without end", "[node\nname = \"a\"\n", `leasehold.toml:1:6: not TOML: expected ']' to close table name`},
		{"a list without end", "[log]\nlevel = [ \"a\"\n[node]\nnam = \"x\"\n", `leasehold.toml:3:1: not TOML: expected ',' or ']' after array value
leasehold.toml:4:1: node.nam: unknown key (did you mean "name"?)`},
		{"a list without commas, reported once", "[delivery]\ntargets = [\n  \"a\"\n  \"b\"\n  \"c\"\n]\nconcurency = 1\n", `leasehold.toml:4:3: not TOML: expected ',' or ']' after array value
leasehold.toml:7:1: delivery.concurency: unknown key (did you mean "concurrency"?)`},
		{"invalid UTF-8", "[node]\nname = \"a\xffb\"\n", `leasehold.toml:2:10: not TOML: invalid UTF-8 character in basic string`},
		{"UTF-16", "\xff\xfe[\x00n\x00", `leasehold.toml:1:4: not UTF-8 text; save the file as UTF-8`},
		{"a control character in a comment", "# \x01\n", `leasehold.toml:1:3: not TOML: control characters are not allowed in comments`},
		{"a string without end", "[node]\nname = \"\"\"abc\n", `leasehold.toml:2:14: not TOML: multiline basic string not terminated by """`},
		{"the end inside a value", "[node]\nname =", `leasehold.toml:2:6: not TOML: expected value, not end of input`},
		{"an empty key", "= 1\n", `leasehold.toml:1:1: not TOML: invalid character at start of key: U+003D '='`},

		// keys
		{"an unknown key", "[lease]\nttll = \"30s\"\n", `leasehold.toml:2:1: lease.ttll: unknown key (did you mean "ttl"?)`},
		{"an unknown key that nothing is close to", "[log]\ncolour = true\n", `leasehold.toml:2:1: log.colour: unknown key (known: level, format)`},
		{"a key of another table", "[log]\ndata_dir = \"/d\"\n", `leasehold.toml:2:1: log.data_dir: unknown key ([node] has a key of that name)`},
		{"an unknown table", "[leese]\nttl = \"30s\"\n", `leasehold.toml:1:2: leese: unknown key (did you mean "lease"?)`},
		{"an unknown dotted key", "lease.tl = \"30s\"\n", `leasehold.toml:1:7: lease.tl: unknown key (did you mean "ttl"?)`},
		{"an unknown key that needs quotes", "[log]\n\"a b\" = 1\n", `leasehold.toml:2:1: log."a b": unknown key (known: level, format)`},
		{"a key that is longer than a line", strings.Repeat("k", 70) + " = 1\n", `leasehold.toml:1:1: "` + strings.Repeat("k", 64) + `…": unknown key (known: node, store, lease, connect, delivery, target, installation, admin, health, retention, tasks, log)`},
		{"a line break in a key", "[log]\n\"a\\nb\" = 1\n", `leasehold.toml:2:1: log."a\nb": unknown key (known: level, format)`},
		{"a key twice", "[node]\nname = \"a\"\nname = \"b\"\n", `leasehold.toml:3:1: node.name: is defined twice, first in line 2`},
		{"a table twice", "[node]\n[log]\n[node]\n", `leasehold.toml:3:2: node: is defined twice, first in line 1`},
		{"a key twice in an inline table", "[node]\nlabels = { a = \"1\", a = \"2\" }\n", `leasehold.toml:2:21: node.labels.a: is defined twice, first in line 2`},
		{"a key twice in an installation", acme + "tls.name = \"x\"\n", `leasehold.toml:7:5: installation "acme": tls.name: is defined twice, first in line 6`},
		{"a table of dotted keys that a header opens again", "node.name = \"a\"\n[node]\nnam = 1\n", `leasehold.toml:2:2: node: is defined twice, first in line 1
leasehold.toml:3:1: node.nam: unknown key (did you mean "name"?)`},
		{"a value that a header opens", "[log]\nlevel = \"info\"\n[log.level.x]\ny = 1\n", `leasehold.toml:3:6: log.level: is defined twice, first in line 2`},
		{"a value that a dotted key opens", "[log]\nlevel = \"info\"\nlevel.x = 1\n", `leasehold.toml:3:1: log.level: is defined twice, first in line 2`},
		{"a list that a header adds to", "target = []\n[[target]]\nname = \"a\"\n", `leasehold.toml:2:3: target: is defined twice, first in line 1`},
		{"an inline table that a header adds to", "node = { name = \"a\" }\n[node]\n", `leasehold.toml:2:2: node: is defined twice, first in line 1`},
		{"an API on the network without TLS", "[admin]\nlisten = [\"127.0.0.1:1\", \"0.0.0.0:8470\"]\n", `leasehold.toml:2:26: admin.listen: is not on the loopback, where tokens would be seen on the way (write tls_cert and tls_key, or listen on 127.0.0.1)`},
		{"an API on no port", "[admin]\nlisten = [\"127.0.0.1\"]\n", `leasehold.toml:2:11: admin.listen: must be HOST:PORT (such as "127.0.0.1:8470")`},
		{"a certificate without its key", "[admin]\ntls_cert = \"x.pem\"\n", `leasehold.toml:2:12: admin.tls_cert: needs its key (write tls_key = "PATH")`},
		{"an unknown key in a table of tasks", "[tasks.key_reload]\nevry = \"x\"\n", `leasehold.toml:2:1: tasks.key_reload.evry: unknown key (did you mean "every"?)`},

		// types
		{"a number for a string", "[node]\nname = 5\n", `leasehold.toml:2:8: node.name: must be a string, not a whole number`},
		{"a string for a number", "[connect]\nin_flight = \"64\"\n", `leasehold.toml:2:13: connect.in_flight: must be a whole number, not a string`},
		{"a fraction for a whole number", "[connect]\nin_flight = 6.5\n", `leasehold.toml:2:13: connect.in_flight: must be a whole number, not a number with a fraction`},
		{"a string for a boolean", "[store]\nforce_network_fs = \"yes\"\n", `leasehold.toml:2:20: store.force_network_fs: must be true or false, not a string`},
		{"a string for a list", "[delivery]\ntargets = \"app\"\n", `leasehold.toml:2:11: delivery.targets: must be a list, not a string`},
		{"a string for a table", "[node]\nlabels = \"a\"\n", `leasehold.toml:2:10: node.labels: must be a table, not a string`},
		{"a list for a table", "lease = [1]\n", `leasehold.toml:1:9: lease: must be a table, not a list`},
		{"a date for a string", "[node]\nname = 2026-11-30\n", `leasehold.toml:2:8: node.name: must be a string, not a date or time`},
		{"a string for a rate", "[connect]\nper_type_rate = \"5\"\n", `leasehold.toml:2:17: connect.per_type_rate: must be a number, not a string`},
		{"a number for a duration", "[lease]\nttl = 30\n", `leasehold.toml:2:7: lease.ttl: must be a string in quotes, not a whole number (such as ttl = "30s")`},
		{"a number for a path", "[admin]\nsocket = 1\n", `leasehold.toml:2:10: admin.socket: must be a string, not a whole number`},
		{"a number for a url", "[store]\nurl = 1\n", `leasehold.toml:2:7: store.url: must be a string or a reference such as { env = "NAME" }, not a whole number`},
		{"a table for a list of tables", "[target]\nname = \"a\"\n", `leasehold.toml:1:2: target: is a list of tables (write [[target]])`},
		{"a string in a list of tables", "installation = [\"a\"]\n", `leasehold.toml:1:17: installation: must be a table, not a string
leasehold.toml:1:17: installation #1: id: is missing
leasehold.toml:1:17: installation #1: type: is missing`},
		{"a wrong item of a list", "[connect]\nno_proxy = [\"a\", 5]\n", `leasehold.toml:2:18: connect.no_proxy: must be a string, not a whole number`},
		{"a wrong value of a label", "[node]\nlabels = { a = 1 }\n", `leasehold.toml:2:16: node.labels.a: must be a string, not a whole number`},

		// values
		{"not a duration", "[lease]\nttl = \"30\"\n", `leasehold.toml:2:7: lease.ttl: must be a duration such as "30s", "5m", "1h" or "7d"`},
		{"a negative duration", "[retention]\nevents = \"-7d\"\n", `leasehold.toml:2:10: retention.events: must be positive (got -7d)`},
		{"a zero interval", "[tasks.sweeper]\nevery = \"0s\"\n", `leasehold.toml:2:9: tasks.sweeper.every: must be positive (got 0s)`},
		{"an endless duration", "[retention]\ndead = \"999999d\"\n", `leasehold.toml:2:8: retention.dead: is too long a duration; the most is 292 years`},
		{"a number below its bound", "[delivery]\nconcurrency = 0\n", `leasehold.toml:2:15: delivery.concurrency: must be at least 1 (got 0)`},
		{"a number above its bound", "[delivery]\nconcurrency = 5000\n", `leasehold.toml:2:15: delivery.concurrency: must be at most 4096 (got 5000)`},
		{"a number that no machine holds", "[delivery]\nconcurrency = 99999999999999999999\n", `leasehold.toml:2:15: delivery.concurrency: is out of range`},
		{"a rate of zero", "[connect]\nper_type_rate = 0\n", `leasehold.toml:2:17: connect.per_type_rate: must be positive (got 0)`},
		{"a rate that is no number", "[connect]\nper_type_rate = nan\n", `leasehold.toml:2:17: connect.per_type_rate: is out of range`},
		{"not one of the words", "[log]\nlevel = \"wran\"\n", `leasehold.toml:2:9: log.level: must be "debug", "info", "warn" or "error" (did you mean "warn"?)`},
		{"a margin that the closing does not fit in", "[lease]\nmargin = \"1s\"\n", `leasehold.toml:2:10: lease.margin: must be at least 2s (got 1s)`},

		// the lease
		{"a ttl that is too short", "[lease]\nrenew_every = \"5s\"\nttl = \"15s\"\n", `leasehold.toml:3:7: lease: unsafe: a renewal is trusted for 11.97s (ttl 15s less 0.2 % clock error less margin 3s), but renew_every 5s + 3 × attempt_timeout 3s + 2 × 1s between them take 16s (raise ttl to at least 20s, or lower the others)`},
		{"an attempt that leaves no room for another", "[lease]\nrenew_every = \"1s\"\nattempt_timeout = \"9s\"\nttl = \"20s\"\nmargin = \"2s\"\n", `leasehold.toml:4:7: lease: unsafe: attempt_timeout 9s leaves no room for another attempt after one that hangs; it must be less than 8.48s, half of what renew_every 1s leaves of 17.96s of trust (ttl 20s less 0.2 % clock error less margin 2s) (lower attempt_timeout or raise ttl)`},
		{"a renewal that is later than its trust", "[lease]\nrenew_every = \"30s\"\n", `leasehold.toml:2:15: lease: unsafe: a renewal is trusted for 26.94s (ttl 30s less 0.2 % clock error less margin 3s), but renew_every 30s + 3 × attempt_timeout 3s + 2 × 1s between them take 41s (raise ttl to at least 45s, or lower the others)`},
		{"a ttl that is too long", "[lease]\nttl = \"2d\"\n", `leasehold.toml:2:7: lease: ttl, renew_every and attempt_timeout must be at most 1d`},

		// the store
		{"a password in the store's url", "[store]\nurl = \"postgres://u:p@h/db\"\n", `leasehold.toml:2:7: store.url: a literal secret is refused; put the whole URL in a file and write url = { file = "PATH" }, or set LEASEHOLD_STORE_URL`},
		{"a password in its query", "[store]\nurl = \"postgres://h/db?password=p\"\n", `leasehold.toml:2:7: store.url: a literal secret is refused; put the whole URL in a file and write url = { file = "PATH" }, or set LEASEHOLD_STORE_URL`},
		{"half a postgres url", "[store]\nurl = \"postgres:leasehold\"\n", `leasehold.toml:2:7: store.url: is no URL (such as "postgres://leasehold@db.example.org/leasehold?sslmode=verify-full")`},
		{"another database", "[store]\nurl = \"mysql:x\"\n", `leasehold.toml:2:7: store.url: must begin with "sqlite:" or "postgres://" (such as "sqlite:leasehold.db")`},
		{"parameters in the url", "[store]\nurl = \"sqlite:a.db?mode=ro\"\n", `leasehold.toml:2:7: store.url: takes no parameters (such as "sqlite:leasehold.db")`},
		{"a database in memory", "[store]\nurl = \"sqlite::memory:\"\n", `leasehold.toml:2:7: store.url: must name a file (such as "sqlite:leasehold.db")`},
		{"a relative path after //", "[store]\nurl = \"sqlite://a.db\"\n", `leasehold.toml:2:7: store.url: must name an absolute path after // (such as "sqlite:///var/lib/leasehold/leasehold.db" or "sqlite:leasehold.db")`},

		// the proxy
		{"a proxy that is no url", "[connect]\nproxy = \"proxy:3128\"\n", `leasehold.toml:2:9: connect.proxy: must be a URL (such as "http://proxy.example.org:3128")`},
		{"a proxy of another kind", "[connect]\nproxy = \"ftp://h\"\n", `leasehold.toml:2:9: connect.proxy: must begin with http://, https:// or socks5://`},
		{"a password in the proxy", "[connect]\nproxy = \"http://u:hunter2@h\"\n", `leasehold.toml:2:9: connect.proxy: a literal secret is refused; put the whole URL in a file and write proxy = { file = "PATH" }, or { env = "HTTPS_PROXY" }`},

		// the ping
		{"a ping that is no url", "[health]\nping_url = \"hc.example.org/ID\"\n", `leasehold.toml:2:12: health.ping_url: must be a URL (such as "https://hc.example.org/ping/ID")`},
		{"a ping of another kind", "[health]\nping_url = \"ftp://h/ID\"\n", `leasehold.toml:2:12: health.ping_url: must begin with http:// or https:// (such as "https://hc.example.org/ping/ID")`},
		{"a password in the ping", "[health]\nping_url = \"https://u:hunter2@h/\"\n", `leasehold.toml:2:12: health.ping_url: a literal secret is refused; put the whole URL in a file and write ping_url = { file = "PATH" }`},

		// targets
		{"a target without name and type", "[[target]]\nurl = \"http://h\"\n", `leasehold.toml:1:3: target #1: name: is missing
leasehold.toml:1:3: target #1: type: is missing`},
		{"an empty name", "[[target]]\nname = \"\"\ntype = \"log\"\n", `leasehold.toml:2:8: target #1: name: must not be empty`},
		{"a name with a blank", "[[target]]\nname = \"a b\"\ntype = \"log\"\n", `leasehold.toml:2:8: target "a b": name: must be letters, digits, ".", "_" and "-", beginning with a letter or digit, at most 128`},
		{"an unknown target type", "[[target]]\nname = \"a\"\ntype = \"https\"\n", `leasehold.toml:3:8: target "a": type: must be "http", "command", "message", "log" or "pull" (did you mean "http"?)`},
		{"a command target without one", "[[target]]\nname = \"a\"\ntype = \"command\"\n", `leasehold.toml:1:3: target "a": command: is missing`},
		{"a command that depends on the folder", "[[target]]\nname = \"a\"\ntype = \"command\"\ncommand = [\"./run.sh\"]\n", `leasehold.toml:4:11: target "a": command: "./run.sh" depends on the folder that Leasehold was started in; write an absolute path, or a name in the PATH`},
		{"a secret among the arguments", "[[target]]\nname = \"a\"\ntype = \"command\"\ncommand = [\"run\", \"--token\", \"hunter2\"]\n", `leasehold.toml:4:30: target "a": command: a literal secret is refused: everybody on the machine can read it; write env = { NAME = { file = "PATH" } } and let the program take it from there`},
		{"a secret among the variables", "[[target]]\nname = \"a\"\ntype = \"command\"\ncommand = [\"run\"]\nenv = { API_TOKEN = \"hunter2\", MODE = \"x\" }\n", `leasehold.toml:5:21: target "a": env.API_TOKEN: a literal secret is refused; put it in a file and write API_TOKEN = { file = "/etc/leasehold/a.api_token" }, or { env = "A_API_TOKEN" }, or run leasehold secrets set a.api_token and write { secret = "a.api_token" }`},
		{"variables that are none", "[[target]]\nname = \"a\"\ntype = \"command\"\ncommand = [\"run\"]\nenv = { \"A=B\" = \"x\", LEASEHOLD_TARGET = \"x\", C = \"a\\u0000b\" }\n", `leasehold.toml:5:17: target "a": env."A=B": "A=B" is no name of a variable
leasehold.toml:5:41: target "a": env.LEASEHOLD_TARGET: names beginning with LEASEHOLD_ are Leasehold's own
leasehold.toml:5:50: target "a": env.C: C: has a NUL byte in it`},
		{"a signing key in the file", "[[target]]\nname = \"a\"\ntype = \"http\"\nurl = \"http://h\"\nsigning_keys = [{ env = \"KEY\" }, \"whsec_hunter2\"]\n", `leasehold.toml:5:34: target "a": signing_keys: a literal secret is refused; put it in a file and write signing_keys = [{ file = "/etc/leasehold/a.signing_keys" }], or { env = "A_SIGNING_KEYS" }, or run leasehold secrets set a.signing_keys and write { secret = "a.signing_keys" }`},
		{"signing keys that are no list", "[[target]]\nname = \"a\"\ntype = \"http\"\nurl = \"http://h\"\nsigning_keys = \"whsec_hunter2\"\n", `leasehold.toml:5:16: target "a": signing_keys: must be a list, not a string`},
		{"signing keys of another type of target", "[[target]]\nname = \"a\"\ntype = \"log\"\nsigning_keys = [{ env = \"KEY\" }]\n", `leasehold.toml:4:16: target "a": signing_keys: does not go with type = "log" (remove it)`},
		{"a message target that says neither who nor where", "[[target]]\nname = \"a\"\ntype = \"message\"\n", `leasehold.toml:1:3: target "a": conversation: is missing
leasehold.toml:1:3: target "a": installation: is missing`},
		{"a message target of nobody", "[[target]]\nname = \"a\"\ntype = \"message\"\ninstallation = \"opps\"\nconversation = \"C\"\n[[installation]]\nid = \"ops\"\ntype = \"bare\"\n", `leasehold.toml:4:16: target "a": installation: installation "opps" is not defined (did you mean "ops"?)`},
		{"a text with a field that no event has", "[[target]]\nname = \"a\"\ntype = \"message\"\ninstallation = \"ops\"\nconversation = \"C\"\ntext = \"{sender.nam}: {text}\"\n[[installation]]\nid = \"ops\"\ntype = \"bare\"\n", `leasehold.toml:6:8: target "a": text: {sender.nam} is no field of an event (did you mean {sender.name}?)`},
		{"a text with a brace alone", "[[target]]\nname = \"a\"\ntype = \"message\"\ninstallation = \"ops\"\nconversation = \"C\"\ntext = \"{text\"\n[[installation]]\nid = \"ops\"\ntype = \"bare\"\n", `leasehold.toml:6:8: target "a": text: has a { without its }; write {{ for a brace`},
		{"keys of a message target with another type", "[[target]]\nname = \"a\"\ntype = \"log\"\nconversation = \"C\"\n", `leasehold.toml:4:16: target "a": conversation: does not go with type = "log" (remove it)`},
		{"keys of another type of target", "[[target]]\nname = \"a\"\ntype = \"command\"\ncommand = [\"run\"]\nurl = \"http://h\"\n[[target]]\nname = \"b\"\ntype = \"http\"\nurl = \"http://h\"\ncommand = [\"run\"]\n", `leasehold.toml:5:7: target "a": url: does not go with type = "command" (remove it)
leasehold.toml:10:11: target "b": command: does not go with type = "http" (remove it)`},
		{"a kind that is none", "[[target]]\nname = \"a\"\ntype = \"log\"\nkinds = [\"direct\", \"\"]\n", `leasehold.toml:4:20: target "a": kinds: must be a kind of conversation, such as "direct"`},
		{"a field that no event has", "[[target]]\nname = \"a\"\ntype = \"log\"\nmatch = { \"conversation.idd\" = \"C02\" }\n", `leasehold.toml:4:11: target "a": match."conversation.idd": is no field of an event (did you mean "conversation.id"?)`},
		{"a field in tables that no event has", "[[target]]\nname = \"a\"\ntype = \"log\"\n[target.match]\nthread = \"t\"\nsender.shoesize = \"ada\"\nraw.event.type = \"x\"\n", `leasehold.toml:6:8: target "a": match."sender.shoesize": is no field of an event (see docs/delivery.md for the fields)
leasehold.toml:7:11: target "a": match."raw.event.type": is no field of an event (write "raw/event/type")`},
		{"a field without its group", "[[target]]\nname = \"a\"\ntype = \"log\"\nmatch = { emoji = \"eyes\" }\n", `leasehold.toml:4:11: target "a": match.emoji: is no field of an event (did you mean "reaction.emoji"?)`},
		{"a value that no field has", "[[target]]\nname = \"a\"\ntype = \"log\"\nmatch = { text = [\"ok\", \"a*b\"], addressed = \"yes\", thread = [] }\n", `leasehold.toml:4:25: target "a": match.text: may have one *, at its end
leasehold.toml:4:45: target "a": match.addressed: must be true or false
leasehold.toml:4:52: target "a": match.thread: has no value (such as "acme", or a list of which one must fit)`},
		{"a value of another kind", "[[target]]\nname = \"a\"\ntype = \"log\"\nmatch = { text = 1.5, thread = [[\"x\"]] }\n", `leasehold.toml:4:18: target "a": match.text: must be a string, a whole number, true, false, or a list of them, not a number with a fraction
leasehold.toml:4:32: target "a": match.thread: must be a string, a whole number, true, false, or a list of them, not a list`},
		{"a match that is no table", "[[target]]\nname = \"a\"\ntype = \"log\"\nmatch = \"text\"\n", `leasehold.toml:4:9: target "a": match: must be a table, not a string`},
		{"an http target without url", "[[target]]\nname = \"a\"\ntype = \"http\"\n", `leasehold.toml:1:3: target "a": url: is missing`},
		{"an http target with an empty url", "[[target]]\nname = \"a\"\ntype = \"http\"\nurl = \"\"\n", `leasehold.toml:4:7: target "a": url: must not be empty`},
		{"a url of another kind", "[[target]]\nname = \"a\"\ntype = \"http\"\nurl = \"localhost:3000\"\n", `leasehold.toml:4:7: target "a": url: must begin with http:// or https:// (such as "http://127.0.0.1:3000/events")`},
		{"a socket without an absolute path", "[[target]]\nname = \"a\"\ntype = \"http\"\nurl = \"http+unix://x\"\n", `leasehold.toml:4:7: target "a": url: must name the socket by its absolute path: http+unix:///run/app.sock:/events`},
		{"ranges that are none", "[delivery]\ndeny_cidrs = [\"10.0.0.0/8\", \"localhost\", \"10.0.0.1\"]\n", `leasehold.toml:2:29: delivery.deny_cidrs: must be a range of addresses (such as "169.254.0.0/16", or "10.1.2.3/32" for one)
leasehold.toml:2:42: delivery.deny_cidrs: must be a range of addresses (such as "169.254.0.0/16", or "10.1.2.3/32" for one)`},
		{"a certificate without its key", "[[target]]\nname = \"a\"\ntype = \"http\"\nurl = \"https://h\"\nclient_cert = \"c.pem\"\n", `leasehold.toml:5:15: target "a": client_cert: needs its key (write client_key = { file = "PATH" })`},
		{"a key without its certificate", "[[target]]\nname = \"a\"\ntype = \"http\"\nurl = \"https://h\"\nclient_key = { file = \"k.pem\" }\n", `leasehold.toml:5:14: target "a": client_key: needs its certificate (write client_cert = "PATH")`},
		{"a literal key", "[[target]]\nname = \"a\"\ntype = \"http\"\nurl = \"https://h\"\nclient_cert = \"c.pem\"\nclient_key = \"k.pem\"\n", `leasehold.toml:6:14: target "a": client_key: a literal secret is refused; put it in a file and write client_key = { file = "/etc/leasehold/a.client_key" }, or { env = "A_CLIENT_KEY" }, or run leasehold secrets set a.client_key and write { secret = "a.client_key" }`},
		{"a port that no address has", "[[target]]\nname = \"a\"\ntype = \"http\"\nurl = \"http://x:99999/\"\n", `leasehold.toml:4:7: target "a": url: has a port that is not between 1 and 65535`},
		{"a port of nothing", "[[target]]\nname = \"a\"\ntype = \"http\"\nurl = \"http://x:0/\"\n", `leasehold.toml:4:7: target "a": url: has a port that is not between 1 and 65535`},
		{"a header that has no name", "[[target]]\nname = \"a\"\ntype = \"http\"\nurl = \"http://x/\"\nheaders = { \"X Team\" = \"a\" }\n", `leasehold.toml:5:24: target "a": headers."X Team": is not the name of a header (such as "X-Team")`},
		{"a header of two lines", "[[target]]\nname = \"a\"\ntype = \"http\"\nurl = \"http://x/\"\nheaders = { X-Team = \"a\\nb\" }\n", `leasehold.toml:5:22: target "a": headers.X-Team: must not contain line ends or other control characters`},
		{"a url without host", "[[target]]\nname = \"a\"\ntype = \"http\"\nurl = \"http:///x\"\n", `leasehold.toml:4:7: target "a": url: has no host (such as "http://127.0.0.1:3000/events")`},
		{"not a url", "[[target]]\nname = \"a\"\ntype = \"http\"\nurl = \"http://[\"\n", `leasehold.toml:4:7: target "a": url: is not a URL (such as "http://127.0.0.1:3000/events")`},
		{"a password in a url", "[[target]]\nname = \"a\"\ntype = \"http\"\nurl = \"http://u:hunter2@h/\"\n", `leasehold.toml:4:7: target "a": url: a literal secret is refused; take user and password out of the URL and write headers = { Authorization = { file = "PATH" } }`},
		{"a log target with a url", "[[target]]\nname = \"a\"\ntype = \"log\"\nurl = \"http://h\"\nca_file = \"x\"\nheaders = { A = \"b\" }\n", `leasehold.toml:4:7: target "a": url: does not go with type = "log" (remove it)
leasehold.toml:5:11: target "a": ca_file: does not go with type = "log" (remove it)
leasehold.toml:6:11: target "a": headers: does not go with type = "log" (remove it)`},
		{"a blank in an event", app + "events = [\"message\", \"a, b\"]\n", `leasehold.toml:5:22: target "app": events: must be an event type such as "message", a family such as "message.*", or "*"`},
		{"a star in the middle of an event", app + "events = [\"message.*\", \"*.edited\"]\n", `leasehold.toml:5:24: target "app": events: must be an event type such as "message", a family such as "message.*", or "*"`},
		{"not an order", app + "order = \"conversations\"\n", `leasehold.toml:5:9: target "app": order: must be "conversation", "installation" or "none" (did you mean "conversation"?)`},
		{"a negative time-out", app + "timeout = \"-5s\"\n", `leasehold.toml:5:11: target "app": timeout: must be positive (got -5s)`},
		{"a secret header", app + "headers = { Authorization = \"Bearer hunter2\" }\n", `leasehold.toml:5:29: target "app": headers.Authorization: a literal secret is refused; put it in a file and write Authorization = { file = "/etc/leasehold/app.authorization" }, or { env = "APP_AUTHORIZATION" }, or run leasehold secrets set app.authorization and write { secret = "app.authorization" }`},
		{"a secret header in its own table", app + "[target.headers]\nX-Api-Key = \"hunter2\"\n", `leasehold.toml:6:13: target "app": headers.X-Api-Key: a literal secret is refused; put it in a file and write X-Api-Key = { file = "/etc/leasehold/app.x-api-key" }, or { env = "APP_X_API_KEY" }, or run leasehold secrets set app.x-api-key and write { secret = "app.x-api-key" }`},
		{"a target twice", app + app, `leasehold.toml:6:8: target "app": name: is defined twice, first at leasehold.toml:1`},
		{"a target that is not there", app + "[delivery]\ntargets = [\"app\", \"apq\"]\n", `leasehold.toml:6:19: delivery.targets: target "apq" is not defined (did you mean "app"?)`},
		{"a target where there is none", "[delivery]\ntargets = [\"app\"]\n", `leasehold.toml:2:12: delivery.targets: target "app" is not defined (there is no [[target]])`},

		// installations
		{"an installation without id and type", "[[installation]]\n", `leasehold.toml:1:3: installation #1: id: is missing
leasehold.toml:1:3: installation #1: type: is missing`},
		{"an unknown channel type", "[[installation]]\nid = \"a\"\ntype = \"slak\"\n", `leasehold.toml:3:8: installation "a": type: unknown channel type "slak" (did you mean "slack"?)`},
		{"a channel type that nothing is close to", "[[installation]]\nid = \"a\"\ntype = \"teams\"\n", `leasehold.toml:3:8: installation "a": type: unknown channel type "teams" (one of heartbeat, slack, socket, bare)`},
		{"an installation twice", "[[installation]]\nid = \"a\"\ntype = \"bare\"\n[[installation]]\nid = \"a\"\ntype = \"bare\"\n", `leasehold.toml:5:6: installation "a": id: is defined twice, first at leasehold.toml:1`},
		{"an id with a colon", "[[installation]]\nid = \"loop:a\"\ntype = \"bare\"\n", `leasehold.toml:2:6: installation "loop:a": id: must be letters, digits, ".", "_" and "-", beginning with a letter or digit, at most 128`},
		{"targets of an installation that are not there", app + "[[installation]]\nid = \"a\"\ntype = \"bare\"\ntargets = [\"ap\"]\n", `leasehold.toml:8:12: installation "a": targets: target "ap" is not defined (did you mean "app"?)`},
		{"via nobody", "[[installation]]\nid = \"a\"\ntype = \"bare\"\nvia = \"b\"\n", `leasehold.toml:4:7: installation "a": via: installation "b" is not defined`},
		{"via itself", "[[installation]]\nid = \"a\"\ntype = \"bare\"\nvia = \"a\"\n", `leasehold.toml:4:7: installation "a": via: an installation cannot ride on itself`},
		{"via a rider", "[[installation]]\nid = \"a\"\ntype = \"bare\"\n[[installation]]\nid = \"b\"\ntype = \"bare\"\nvia = \"a\"\n[[installation]]\nid = \"c\"\ntype = \"bare\"\nvia = \"b\"\n", `leasehold.toml:11:7: installation "c": via: installation "b" has no connection of its own: it rides on "a" (write via = "a")`},
		{"via another type", "[[installation]]\nid = \"a\"\ntype = \"heartbeat\"\n[[installation]]\nid = \"b\"\ntype = \"bare\"\nvia = \"a\"\n", `leasehold.toml:7:7: installation "b": via: installation "a" is of another type, "heartbeat"`},
		{"a config that is no table", "[[installation]]\nid = \"a\"\ntype = \"bare\"\nconfig = 1\n", `leasehold.toml:4:10: installation "a": config: must be a table, not a whole number`},

		// the keys of a channel type
		{"a required key that is missing", "[[installation]]\nid = \"a\"\ntype = \"socket\"\n[installation.config]\ntls.name = \"h\"\n", `leasehold.toml:4:15: installation "a": url: is missing`},
		{"a config that is missing", "[[installation]]\nid = \"a\"\ntype = \"socket\"\n", `leasehold.toml:1:3: installation "a": tls.name: is missing
leasehold.toml:1:3: installation "a": url: is missing`},
		{"a required key that is empty", strings.Replace(acme, "ws://h", "", 1), `leasehold.toml:5:7: installation "acme": url: must not be empty`},
		{"an unknown key of a type", acme + "ping_evry = \"3s\"\n", `leasehold.toml:7:1: installation "acme": ping_evry: unknown key (did you mean "ping_every"?)`},
		{"a key of a type that has none", "[[installation]]\nid = \"a\"\ntype = \"bare\"\n[installation.config]\nx = 1\n", `leasehold.toml:5:1: installation "a": x: unknown key`},
		{"a common key in the config", acme + "enabled = false\n", `leasehold.toml:7:1: installation "acme": enabled: belongs to [[installation]], not to its config (move it above [installation.config])`},
		{"another common key in the config", acme + "targets = [\"x\"]\n", `leasehold.toml:7:1: installation "acme": targets: belongs to [[installation]], not to its config (move it above [installation.config])`},
		{"a common word in a table of the config", acme + "tls.enabled = true\n", `leasehold.toml:7:5: installation "acme": tls.enabled: unknown key (known: name, skip)`},
		{"a key of the type outside the config", "[[installation]]\nid = \"a\"\ntype = \"heartbeat\"\nevery = \"1m\"\n", `leasehold.toml:4:1: installation "a": every: unknown key (a key of the channel type: move it under [installation.config])`},
		{"a word that a type does not know", acme + "mode = \"texts\"\n", `leasehold.toml:7:8: installation "acme": mode: must be "text" or "binary"`},
		{"a number beyond a type's bound", acme + "retries = 10\n", `leasehold.toml:7:11: installation "acme": retries: must be at most 9 (got 10)`},
		{"a number beyond a type's width", acme + "rules = [{ pointer = \"/id\", weight = 256 }]\n", `leasehold.toml:7:38: installation "acme": rules[0].weight: is out of range`},
		{"a negative number for an unsigned", acme + "[[installation.config.rules]]\npointer = \"/id\"\nweight = -1\n", `leasehold.toml:9:10: installation "acme": rules[0].weight: is out of range`},
		{"a float beyond its width", acme + "small = 1e39\n", `leasehold.toml:7:9: installation "acme": small: is out of range`},
		{"a required key of a list's table", acme + "rules = [{ weight = 1 }]\n", `leasehold.toml:7:10: installation "acme": rules[0].pointer: is missing`},
		{"an unknown key in a type's table", acme + "tls.skp = true\n", `leasehold.toml:7:5: installation "acme": tls.skp: unknown key (did you mean "skip"?)`},
		{"not a type's duration", acme + "idle = \"5 minutes\"\n", `leasehold.toml:7:8: installation "acme": idle: it is not a duration such as 30s`},
		{"a type's zero duration", acme + "ping_every = \"0s\"\n", `leasehold.toml:7:14: installation "acme": ping_every: must be positive (got 0)`},
		{"not what a type reads", acme + "shape = \"x\"\n", `leasehold.toml:7:9: installation "acme": shape: is not what the type reads`},
		{"what JSON cannot carry", acme + "free = { a = [1, { b = inf }] }\nany = 99999999999999999999\n", `leasehold.toml:7:24: installation "acme": free.a[1].b: is out of range
leasehold.toml:8:7: installation "acme": any: is out of range`},

		// secrets
		{"a literal secret", acme + "app_token = \"hunter2\"\n", `leasehold.toml:7:13: installation "acme": app_token: a literal secret is refused; put it in a file and write app_token = { file = "/etc/leasehold/acme.app_token" }, or { env = "ACME_APP_TOKEN" }, or run leasehold secrets set acme.app_token and write { secret = "acme.app_token" }`},
		{"a literal secret in a tagged string", acme + "pin = \"hunter2\"\n", `leasehold.toml:7:7: installation "acme": pin: a literal secret is refused; put it in a file and write pin = { file = "/etc/leasehold/acme.pin" }, or { env = "ACME_PIN" }, or run leasehold secrets set acme.pin and write { secret = "acme.pin" }`},
		{"a literal secret that is a number", acme + "pin = 1234\n", `leasehold.toml:7:7: installation "acme": pin: a literal secret is refused; put it in a file and write pin = { file = "/etc/leasehold/acme.pin" }, or { env = "ACME_PIN" }, or run leasehold secrets set acme.pin and write { secret = "acme.pin" }`},
		{"a secret by a name that it cannot have", acme + "app_token = { secret = \"a b\" }\n", `leasehold.toml:7:24: installation "acme": app_token.secret: must be the name of a secret, as leasehold secrets list shows it`},
		{"a secret of the store that opens it", "[store]\nmaster_key = { secret = \"x\" }\n", `leasehold.toml:2:14: store.master_key: a secret of the store opens once the store is open (use { env = "NAME" }, { file = "PATH" } or { credential = "NAME" })`},
		{"a secret from a command", acme + "app_token = { command = [\"vault\"] }\n", `leasehold.toml:7:15: installation "acme": app_token.command: not in this version (use { env = "NAME" }, { file = "PATH" }, { credential = "NAME" } or { secret = "NAME" })`},
		{"an unknown reference", acme + "app_token = { fil = \"x\" }\n", `leasehold.toml:7:15: installation "acme": app_token.fil: unknown kind of reference (did you mean "file"?)`},
		{"an empty reference", acme + "app_token = {}\n", `leasehold.toml:7:13: installation "acme": app_token: must have one of env, file, credential and secret (got 0)`},
		{"two references", acme + "app_token = { env = \"X\", file = \"y\" }\n", `leasehold.toml:7:13: installation "acme": app_token: must have one of env, file, credential and secret (got 2)`},
		{"a reference that names nothing", acme + "app_token = { file = \"\" }\n", `leasehold.toml:7:22: installation "acme": app_token.file: must not be empty`},
		{"a reference to a number", acme + "app_token = { env = 5 }\n", `leasehold.toml:7:21: installation "acme": app_token.env: must be a string, not a whole number`},
		{"the secret in place of the variable", acme + "app_token = { env = \"hunter-2\" }\n", `leasehold.toml:7:21: installation "acme": app_token.env: must be the name of an environment variable, without $ and without its value`},
		{"a NUL in a path", acme + "app_token = { file = \"a\\u0000b\" }\n", `leasehold.toml:7:22: installation "acme": app_token.file: must not contain NUL`},
		{"a path as a credential", acme + "app_token = { credential = \"../x\" }\n", `leasehold.toml:7:28: installation "acme": app_token.credential: must be the name of a file in $CREDENTIALS_DIRECTORY, without a folder`},
		{"a secret header of a type", acme + "headers = { Cookie = \"hunter2\" }\n", `leasehold.toml:7:22: installation "acme": headers.Cookie: a literal secret is refused; put it in a file and write Cookie = { file = "/etc/leasehold/acme.cookie" }, or { env = "ACME_COOKIE" }, or run leasehold secrets set acme.cookie and write { secret = "acme.cookie" }`},
		{"a secret beside a placeholder", acme + "headers = { Authorization = \"Bearer {{x}} hunter2\" }\n", `leasehold.toml:7:29: installation "acme": headers.Authorization: a literal secret is refused; put it in a file and write Authorization = { file = "/etc/leasehold/acme.authorization" }, or { env = "ACME_AUTHORIZATION" }, or run leasehold secrets set acme.authorization and write { secret = "acme.authorization" }`},
		{"a placeholder where there are no templates", app + "headers = { Authorization = \"Bearer {{x}}\" }\n", `leasehold.toml:5:29: target "app": headers.Authorization: a literal secret is refused; put it in a file and write Authorization = { file = "/etc/leasehold/app.authorization" }, or { env = "APP_AUTHORIZATION" }, or run leasehold secrets set app.authorization and write { secret = "app.authorization" }`},
		{"a password in a type's url", strings.Replace(acme, "ws://h", "ws://u:hunter2@h", 1), `leasehold.toml:5:7: installation "acme": url: a literal secret is refused; take the password out of the URL and see leasehold types show for the key that takes it by reference`},
		{"a password in a type's header", acme + "headers = { X-From = \"http://u:hunter2@h/\" }\n", `leasehold.toml:7:22: installation "acme": headers.X-From: a literal secret is refused; take the password out of the URL and see leasehold types show for the key that takes it by reference`},
		{"a required secret that is missing", slack + "bot_token = { env = \"X\" }\n", `leasehold.toml:4:15: installation "acme": app_token: is missing`},
	} {
		t.Run(c.name, func(t *testing.T) {
			sameLines(t, faultsIn(t, map[string]string{"leasehold.toml": c.text}), strings.Split(c.want, "\n"))
		})
	}
}

func TestAllFaultsComeOutAtOnceInOrder(t *testing.T) {
	got := faultsIn(t, map[string]string{
		"leasehold.toml": `
[node]
nam = "x"
weight = 0
[lease]
ttl = 30
[log]
level = loud
format = "jsn"
[[target]]
name = "app"
type = "http"
timeout = "-1s"
`,
		"conf.d/20-b.toml": "[[installation]]\nid = \"a\"\ntype = \"slak\"\nvia = 7\n",
		"conf.d/10-a.toml": "[store]\nurl = \"mysql://h\"\n",
	}, "LEASEHOLD_LOG_LEVL=info", "LEASEHOLD_LEASE_MARGIN=soon")
	sameLines(t, got, []string{
		`leasehold.toml:3:1: node.nam: unknown key (did you mean "name"?)`,
		`leasehold.toml:4:10: node.weight: must be at least 1 (got 0)`,
		`leasehold.toml:6:7: lease.ttl: must be a string in quotes, not a whole number (such as ttl = "30s")`,
		`leasehold.toml:8:9: not TOML: unexpected character U+006C 'l' at start of value`,
		`leasehold.toml:9:10: log.format: must be "auto", "json" or "text" (did you mean "json"?)`,
		`leasehold.toml:13:11: target "app": timeout: must be positive (got -1s)`,
		`conf.d/10-a.toml:2:7: store.url: must begin with "sqlite:" or "postgres://" (such as "sqlite:leasehold.db")`,
		`conf.d/20-b.toml:3:8: installation "a": type: unknown channel type "slak" (did you mean "slack"?)`,
		`conf.d/20-b.toml:4:7: installation "a": via: must be a string, not a whole number`,
		`environment: LEASEHOLD_LEASE_MARGIN: must be a duration such as "30s", "5m", "1h" or "7d"`,
		`environment: LEASEHOLD_LOG_LEVL: is not a key of the config (did you mean LEASEHOLD_LOG_LEVEL?)`,
	})
}

func TestNothingIsMissingFromAFileThatDoesNotParse(t *testing.T) {
	got := faultsIn(t, map[string]string{"leasehold.toml": "[delivery]\ntargets = [\"app\"]\n[[target]]\nname = app\ntype = \"http\"\n"})
	sameLines(t, got, []string{`leasehold.toml:4:8: not TOML: unexpected character U+0061 'a' at start of value`})
}
