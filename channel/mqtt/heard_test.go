package mqtt

import (
	"encoding/json"
	"fmt"
	"testing"

	"pgregory.net/rapid"
)

func numbered(n int) memory { return memory{uint16(n%65535 + 1), "run", uint64(n)} }

func TestHeard(t *testing.T) {
	hear := func(n int) *heard {
		h := &heard{}
		for i := range n {
			h.add(numbered(i), false)
		}
		return h
	}
	t.Run("what is proven is forgotten, but for the last hundred", func(t *testing.T) {
		h := hear(1000)
		if h.prove(700); h.total != 300 {
			t.Errorf("got %d remembered, want the 300 that are not proven", h.total)
		}
		if h.prove(1000); h.total != heardMin || h.all[0].first != numbered(900) {
			t.Errorf("got %d remembered from %v on, want the last %d", h.total, h.all[0], heardMin)
		}
	})
	t.Run("a burst of any length is remembered as a whole, in a few bytes", func(t *testing.T) {
		h := hear(100_000)
		if got := len((&position{Heard: *h}).encode()); h.total != 100_000 || got > 200 {
			t.Errorf("got %d remembered in %d bytes, want all in a few", h.total, got)
		}
		h = again(t, h)
		for i := 100_000 - 65_535; i < 100_000; i++ {
			if m, ok := h.recall(numbered(i).id); !ok || m != numbered(i) {
				t.Fatalf("got %v, %t, want the memory of %d", m, ok, i)
			}
		}
		if h.total != 100_000 || len(h.all) > 4 {
			t.Errorf("got %d remembered in %d stretches, want all in a few", h.total, len(h.all))
		}
	})
	t.Run("no more stretches are remembered than the limit", func(t *testing.T) {
		h := &heard{}
		for i := range 3 * heardMax {
			h.add(numbered(2*i), false)
		}
		if len(h.all) != heardMax || h.total != heardMax || h.all[heardMax-1].first != numbered(2*(3*heardMax-1)) {
			t.Errorf("got %d remembered, want the last %d", len(h.all), heardMax)
		}
	})
	t.Run("a packet id that is used again means its last message", func(t *testing.T) {
		h := &heard{}
		h.add(memory{1, "run", 1}, false)
		h.add(memory{1, "run", 2}, false)
		if m, ok := h.recall(1); !ok || m.n != 2 {
			t.Errorf("got %v, %t, want the newer message", m, ok)
		}
	})
	t.Run("topic and payload are told apart", func(t *testing.T) {
		ids := map[string]bool{}
		for _, m := range []message{{topic: "ab", payload: []byte("c")}, {topic: "a", payload: []byte("bc")}, {topic: "a", payload: []byte("b")}} {
			ids[numbered(1).eventID(m)] = true
		}
		if len(ids) != 3 {
			t.Errorf("got the ids %v, want three", ids)
		}
	})
	t.Run("a position that is no such thing is told", func(t *testing.T) {
		for _, ids := range [][]byte{{1}, {2, 2}, {2, 0, 1}, {2, 2, 0}, {2, 0xfe, 0xff, 0x07, 2}, {0x80}} {
			b, err := json.Marshal([]kept{{"run", ids}})
			if err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(b, &heard{}); err == nil {
				t.Errorf("%v: got no error, want one", ids)
			}
		}
	})
	t.Run("what an earlier connection heard is kept until it can come no more", func(t *testing.T) {
		h := again(t, hear(300))
		for i := 250; i < 300; i++ {
			if _, ok := h.recall(numbered(i).id); !ok {
				t.Fatalf("got no memory of %d, want one", i)
			}
		}
		if h.prove(20); h.total != 300 {
			t.Errorf("got %d remembered while repetitions come, want 300", h.total)
		}
		h.add(numbered(300), false)
		if h.prove(50); h.total != 300 && h.total != 301 {
			t.Errorf("got %d remembered before something new is proven, want all", h.total)
		}
		h.add(numbered(301), false)
		if h.prove(51); h.total != heardMin {
			t.Errorf("got %d remembered once something new is proven, want %d", h.total, heardMin)
		}
	})
	t.Run("or until all of it came", func(t *testing.T) {
		h := again(t, hear(300))
		for i := range 300 {
			if _, ok := h.recall(numbered(i).id); !ok {
				t.Fatalf("got no memory of %d, want one", i)
			}
		}
		if h.prove(120); h.total != 180 {
			t.Errorf("got %d remembered, want the 180 that are not proven", h.total)
		}
	})
	t.Run("or until there is nothing to come", func(t *testing.T) {
		h := again(t, hear(300))
		if h.prove(0); h.total != heardMin {
			t.Errorf("got %d remembered when the broker has nothing for us, want %d", h.total, heardMin)
		}
	})
}

// again is what the next connection makes of it.
func again(t testing.TB, h *heard) *heard {
	t.Helper()
	var pos position
	if err := json.Unmarshal((&position{Place: `a "place"`, Heard: *h}).encode(), &pos); err != nil {
		t.Fatal(err)
	}
	return &pos.Heard
}

// A broker that sends, hears acknowledgements late, and repeats after each cut what
// it does not know to be acknowledged, never makes us give one message two ids.
func TestRepetitionsAreAlwaysRecognised(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var (
			pos     = &position{run: "0"}
			queue   []int // on their way: sent and not known to be acknowledged
			ids     = map[int]string{}
			next    int
			spread  = rapid.SampledFrom([]int{1, 7, 389}).Draw(t, "spread") // one broker counts packet ids, another does not
			pings   []uint64                                                // on this connection: what each proves
			deliver = func(n int, dup bool) {
				m := message{topic: "t", payload: []byte("same"), dup: dup, qos: 1}
				id := pos.identify(uint16(n*spread%1000+1), m)
				if known, ok := ids[n]; ok && known != id {
					t.Fatalf("message %d: got the ids %s and %s, want one", n, known, id)
				}
				for other, known := range ids {
					if known == id && other != n {
						t.Fatalf("got the id %s for the messages %d and %d, want two", id, other, n)
					}
				}
				ids[n] = id
			}
		)
		for range rapid.IntRange(1, 100).Draw(t, "steps") {
			switch rapid.IntRange(0, 5).Draw(t, "step") {
			case 0, 1: // a burst
				for range rapid.IntRange(1, 40).Draw(t, "burst") {
					if len(queue) < 900 {
						queue = append(queue, next)
						deliver(next, false)
						next++
					}
				}
			case 2: // we acknowledge, and ask
				pings = append(pings, pos.Heard.here)
			case 3: // the broker hears some of it and answers
				if len(pings) > 0 {
					known := max(0, len(queue)-int(pos.Heard.here-pings[0]))
					for _, n := range queue[:known] {
						delete(ids, n) // it will not come again
					}
					queue = queue[known:]
					pos.Heard.prove(pings[0])
					pings = pings[1:]
				}
			case 4, 5: // a cut, of which the store knows
				b := pos.encode()
				pos = &position{run: pos.run + "x"}
				if err := json.Unmarshal(b, pos); err != nil {
					t.Fatal(err)
				}
				pings = nil
				for _, n := range queue {
					deliver(n, true)
				}
			}
		}
	})
}

func BenchmarkCursor(b *testing.B) {
	for _, n := range []int{100, 300, heardMax} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			pos := &position{Place: "broker.example.org:1883/leasehold-acme-12345678", Topics: map[string]byte{"devices/#": 1}}
			for i := range n {
				pos.Heard.add(numbered(i), false)
			}
			for b.Loop() {
				_ = pos.encode()
			}
		})
	}
}
