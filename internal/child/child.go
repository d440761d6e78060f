// Package child runs programs so that nothing of them is left behind.
//
// A Child has a process group of its own, and a session where there are such. When it ends, or is
// killed, everything it has started is killed with it: also what has left its
// group, closed its streams, or whose parent has died meanwhile. When this
// process dies, by kill −9 too, the system kills the child; what the child had
// started is found by the next process, from a record in a folder (Keeper.Clear).
//
// How much of that a system can keep differs. Linux: all of it; this process
// becomes the parent of what a child abandons, and reaps it. Windows: all of it,
// by a Job Object, which needs no record. Elsewhere what leaves the process group
// escapes, and after our own death the child lives until Clear. What has removed
// Marker from its environment, has a session of its own and a parent that died
// before Look saw it, escapes on Linux, too.
package child

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"time"

	"leasehold/internal/loop"
)

// Marker is the variable in whose value a child and all that it starts carry
// whose they are.
const Marker = "LEASEHOLD_CHILD"

// ErrLeft means that processes of the same owner that were killed before do not
// die. Nothing else of his is started beside them.
var ErrLeft = errors.New("a process that was left behind does not end")

// patience is how long what was killed may take to die. A process that waits for
// a disk or a network file system is not dead before that answers.
const patience = 3 * time.Second

// Program is what to run.
type Program struct {
	Owner string   // whose it is; what one owner left behind is killed before his next program
	Path  string   // of the executable, absolute
	Argv  []string // with the program's name
	Env   []string // all of it; Marker is added
}

// Keeper runs programs and knows what belongs to them. It is safe for concurrent
// use.
type Keeper struct {
	adopt sync.Once // become the parent of what is abandoned

	mu       sync.Mutex // guards what follows
	dir      string     // of the records; "" = none are kept
	running  map[*Child]bool
	lookedAt time.Time
	suspects map[identity]bool // dead at the last look, and nobody's that we know
}

// NewKeeper makes a Keeper that keeps no records until Keep.
func NewKeeper() *Keeper { return &Keeper{running: map[*Child]bool{}} }

// Child is a program that runs.
type Child struct {
	// Our ends of its streams. Whoever runs it closes them; reading and writing have
	// deadlines where the system has them.
	Stdin, Stdout, Stderr *os.File

	clan    clan // guarded by the keeper, but for its marker
	process *os.Process

	mu    sync.Mutex // guards ended
	ended bool       // its number may be somebody else's by now
}

// End is how a program ended.
type End struct {
	State *os.ProcessState
	Left  int // processes of it that would not die; normally none
}

// Run starts p, calls started, and returns when the program and everything that
// it had started have ended. It occupies the goroutine's thread for all that time,
// because the system kills a child when the thread dies that made it. With an
// error nothing runs; fs.ErrNotExist and fs.ErrPermission are about p.Path, ErrLeft
// about an earlier program of p.Owner.
func (k *Keeper) Run(p Program, started func(*Child)) (End, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	k.adopt.Do(adopt)
	k.Look() // what an earlier one has abandoned may be left to reap
	if err := k.clear(p.Owner); err != nil {
		return End{}, err
	}
	r := record{Owner: p.Owner, Marker: newMarker()}
	c := &Child{clan: clan{marker: r.Marker}}
	k.add(c)
	defer k.remove(c)
	if err := k.write(r); err != nil {
		return End{}, fmt.Errorf("note that a program is started: %w", err)
	}
	leader, err := c.start(p)
	if err != nil {
		k.strike(r)
		return End{}, err
	}
	k.name(c, leader)
	r.Leader = leader
	if err := k.write(r); err != nil {
		c.Kill()
		end := k.await(c)
		c.close()
		return end, fmt.Errorf("note that a program was started: %w", err)
	}
	started(c)
	end := k.await(c)
	if end.Left == 0 {
		k.strike(r)
	}
	return end, nil
}

// start makes the pipes and the process.
func (c *Child) start(p Program) (leader identity, err error) {
	var pipes [3]struct{ read, write *os.File }
	defer func() {
		for i, p := range pipes {
			theirs := p.write
			if i == 0 {
				theirs = p.read
			}
			if theirs != nil {
				_ = theirs.Close() // the child has its own
			}
		}
		if err != nil {
			c.close()
		}
	}()
	for i := range pipes {
		if pipes[i].read, pipes[i].write, err = os.Pipe(); err != nil {
			return leader, fmt.Errorf("make a pipe: %w", err)
		}
	}
	c.Stdin, c.Stdout, c.Stderr = pipes[0].write, pipes[1].read, pipes[2].read
	c.process, err = os.StartProcess(p.Path, p.Argv, &os.ProcAttr{
		Env:   append([]string{Marker + "=" + c.clan.marker}, p.Env...),
		Files: []*os.File{pipes[0].read, pipes[1].write, pipes[2].write},
		Sys:   attributes(),
	})
	if err == nil {
		if leader, err = c.begun(); err != nil {
			_ = c.process.Kill()
			_, _ = c.process.Wait()
		}
	}
	if err != nil {
		return leader, fmt.Errorf("start %s: %w", p.Path, err)
	}
	return leader, nil
}

func (c *Child) close() {
	for _, f := range []*os.File{c.Stdin, c.Stdout, c.Stderr} {
		if f != nil {
			_ = f.Close() // nothing was written that could be lost
		}
	}
}

// PID is the program's process number.
func (c *Child) PID() int { return c.process.Pid }

// Terminate asks the program's group to end, where the system has a way to ask.
// It does not block.
func (c *Child) Terminate() { c.unlessEnded(c.terminate) }

// Kill kills the program's group at once. It does not block; what has left the
// group dies when Run sees the program's end.
func (c *Child) Kill() { c.unlessEnded(c.kill) }

func (c *Child) unlessEnded(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.ended {
		f()
	}
}

// over keeps signals from whoever gets the program's number next.
func (c *Child) over() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
}

func (k *Keeper) add(c *Child) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.running[c] = true
}

// name says who is the first of a child's processes.
func (k *Keeper) name(c *Child, leader identity) {
	k.mu.Lock()
	defer k.mu.Unlock()
	c.clan.leader = leader
}

func (k *Keeper) remove(c *Child) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.running, c)
}

// until calls f with growing pauses until it returns 0 or patience is over, and
// returns what f returned last.
func until(f func() int) int {
	deadline := time.Now().Add(patience)
	for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		n := f()
		if n == 0 || time.Now().After(deadline) {
			return n
		}
		_ = loop.Sleep(context.Background(), pause) // whoever waits for the end of a child waits for this
	}
}
