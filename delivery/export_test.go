package delivery

// Post is the benchmark's plain client.
var Post = post
