package main

// answered are mutants of what programs answer, of keys and of tokens.
var answered = []mutant{
	{
		name: "a program's answers under keys that change with each try", file: "delivery/reply.go", old: `fmt.Sprintf("%s#%d", p.entry.webhookID, i+1)`, new: `fmt.Sprintf("%s#%d", m.ID, i+1)`,
		pkg: "./delivery", run: "TestReplies|TestSimulation",
	},
	{
		name: "an answer that its mark does without (SQLite)", file: "store/sqlite/outbox.go", old: "	return true, reply(g, m)\n", new: "	return true, nil\n",
		pkg: "./store/sqlite", run: storeTests,
	},
	{
		name: "an answer that is stored although its mark is not (SQLite)", file: "store/sqlite/outbox.go", old: "	if err != nil || n == 0 {\n		return false, err\n	}\n	g.changed = true\n	return true, reply(g, m)\n", new: "	if err != nil {\n		return false, err\n	}\n	g.changed = true\n	return n > 0, reply(g, m)\n",
		pkg: "./store/sqlite", run: storeTests,
	},
	{
		name: "an answer that is stored although its mark is not (Postgres)", file: "store/postgres/reply.go", old: "JOIN up ON up.n = r.mark JOIN m", new: "JOIN m",
		pkg: "./store/postgres", run: storeTests,
	},
	{
		name: "a loop that nobody counts", file: "delivery/breaker.go", old: "	t.turns++\n", new: "",
		pkg: "./delivery", run: "TestBreaker",
	},
	{
		name: "answers to people, counted as a loop of bots", file: "delivery/breaker.go", old: "	if !bot {\n", new: "	if false {\n",
		pkg: "./delivery", run: "TestBreaker",
	},
	{
		name: "a token that may what its scopes do not say", file: "admin/access.go", old: "case !t.May(need.scope):", new: "case false:",
		pkg: "./admin", run: "TestAccess|TestGate",
	},
	{
		name: "a token bound to some installations that sees all", file: "admin/access.go", old: `case id != "" && !t.Sees(id):`, new: `case id == "?":`,
		pkg: "./admin", run: "TestAccess|TestGate",
	},
	{
		name: "a pattern of installations that fits the beginning of an id", file: "internal/apitoken/apitoken.go", old: "ok, err := path.Match(pattern, installation)", new: `ok, err := path.Match(pattern+"*", installation)`,
		pkg: "./internal/apitoken", run: ".",
	},
	{
		name: "a token that does not expire", file: "admin/gate.go", old: "if !t.Is(text) || t.Expired(time.Now()) {", new: "if !t.Is(text) {",
		pkg: "./admin", run: "TestGate",
	},
	{
		name: "a token known by its id alone", file: "admin/gate.go", old: "if !t.Is(text) || t.Expired(time.Now()) {", new: "if t.Expired(time.Now()) {",
		pkg: "./admin", run: "TestGate",
	},
	{
		name: "a token that has files of the machine sent to where it likes", file: "admin/refer.go", old: "	case machine:\n", new: "	case machine && false:\n",
		pkg: "./admin", run: "TestGate|TestTargets",
	},
	{
		name: "a token that has a secret of the store sent to where it likes", file: "admin/refer.go", old: "case store && token && (!t.May(apitoken.Secrets) || !t.Everywhere()):", new: "case store && token && false:",
		pkg: "./admin", run: "TestGate|TestTargets",
	},
	{
		name: "a sealed value that opens for another owner", file: "internal/seal/seal.go", old: "	for _, part := range []string{o.Kind, o.Name} {\n", new: "	for _, part := range []string{o.Kind} {\n",
		pkg: "./internal/seal", run: ".",
	},
	{
		name: "a sealed value that is opened with a key of another id", file: "internal/seal/seal.go", old: "	case id != k.ID():\n", new: "	case false:\n",
		pkg: "./internal/seal", run: ".",
	},
	{
		name: "a master key that is deleted before the commit", file: "internal/vault/keys.go", old: "v.o.Own.Write(seal.Ring{next, old})", new: "v.o.Own.Write(seal.Ring{next})",
		pkg: "./internal/vault", run: ".",
	},
	{
		name: "a copy of a master key, left behind by a rotation that was killed", file: "internal/vault/keys.go", old: "	v.o.Own.Tidy()\n", new: "",
		pkg: "./internal/vault", run: ".",
	},
	{
		name: "a retired key that signs", file: "internal/vault/vault.go", old: "		if k.RetiredAt.IsZero() {\n", new: "		if true {\n",
		pkg: "./internal/vault", run: ".",
	},
	{
		name: "a signature over the compressed body", file: "delivery/httpsink.go", old: "s.signer.sign(req.Header, body)", new: "s.signer.sign(req.Header, sent)",
		pkg: "./delivery", run: "TestSignature",
	},
	{
		name: "one key of several that signs", file: "delivery/signature.go", old: "	for i, key := range s {\n", new: "	for i, key := range s[:1] {\n",
		pkg: "./delivery", run: "TestSignature|TestKeyRotation",
	},
	{
		name: "a target that answered 410, asked again", file: "delivery/circuit.go", old: "	case r.Outcome == Gone:\n", new: "	case false:\n",
		pkg: "./delivery", run: "TestOutage|TestRetries|TestOff|TestTarget",
	},
	{
		name: "a 410 that a restart forgets", file: "store/internal/record/target.go", old: "		r.Off, r.Reason, r.OffSince = off, Plain(reason), tx.Now()\n", new: "		r.Reason, r.OffSince = Plain(reason), tx.Now()\n",
		pkg: "./store/sqlite", run: storeTests,
	},
	{
		name: "a delivery that nobody acknowledged, taken for delivered", file: "delivery/pullsink.go", old: `return Result{Outcome: Refused, Reason: "pulled, and not acknowledged in time"`, new: `return Result{Outcome: Taken, Reason: "pulled, and not acknowledged in time"`,
		pkg: "./delivery", run: "TestPull",
	},
	{
		name: "an acknowledgement that ends another's lease", file: "delivery/pullsink.go", old: "	l := s.leases[token]\n	if l == nil {\n		return nil\n	}\n", new: "	l := s.leases[token]\n	for t, other := range s.leases {\n		if l == nil {\n			token, l = t, other\n		}\n	}\n	if l == nil {\n		return nil\n	}\n",
		pkg: "./delivery", run: "TestPull",
	},
	{
		name: "a button that waits for an answer as long as that takes", file: "engine/term.go", old: "const askWithin = 2500 * time.Millisecond", new: "const askWithin = 2500 * time.Minute",
		pkg: "./engine", run: "TestAsk",
	},
}
