package app

import "context"

// background is something that runs until it is stopped, or ends by itself.
type background struct {
	cancel context.CancelFunc
	ended  chan struct{} // closed when it has ended; err is set then
	err    error
}

// start runs f beside the caller, who stops it. The end of ctx does not reach f:
// the order in which things stop is the caller's.
func start(ctx context.Context, f func(context.Context) error) *background {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	b := &background{cancel: cancel, ended: make(chan struct{})}
	go func() {
		defer close(b.ended)
		b.err = f(ctx)
	}()
	return b
}

// stop asks it to end, waits until it has, and returns its error.
func (b *background) stop() error {
	b.cancel()
	<-b.ended
	return b.err
}
