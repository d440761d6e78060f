#!/usr/bin/env perl
# A program that takes only events that Leasehold signed: it prints the id of each.
#
#     perl verify.pl KEYFILE [ADDRESS:PORT]
#
# It uses what comes with Perl. The official libraries of Standard Webhooks do what
# verified does, in many languages.

use strict;
use warnings;
use Digest::SHA qw(hmac_sha256);
use IO::Socket::INET;
use MIME::Base64 qw(decode_base64 encode_base64);

my $tolerance = 5 * 60;     # seconds: an older request may be a recorded one
my $body_max  = 16 << 20;   # bytes: nobody fills our memory

# same compares two texts in a time that does not tell where they differ.
sub same {
    my ($one, $two) = @_;
    return 0 if length $one != length $two;
    my $differs = 0;
    $differs |= ord(substr $one, $_, 1) ^ ord(substr $two, $_, 1) for 0 .. length($one) - 1;
    return $differs == 0;
}

# verified reports whether a request, with its body in bytes, was signed with the key.
sub verified {
    my ($secret, $headers, $body) = @_;
    my ($id, $timestamp) = map { $_ // '' } @$headers{qw(webhook-id webhook-timestamp)};
    return 0 if $timestamp !~ /\A[0-9]+\z/ or abs(time - $timestamp) > $tolerance;
    my $expected = 'v1,' . encode_base64(hmac_sha256("$id.$timestamp.$body", $secret), '');
    return scalar grep { same($_, $expected) } split / /, $headers->{'webhook-signature'} // '';
}

my ($file, $address) = @ARGV;
open my $in, '<', $file or die "$file: $!\n";
chomp(my $key = <$in>);
$key =~ s/\Awhsec_//;
my $secret = decode_base64($key);

my $server = IO::Socket::INET->new(LocalAddr => $address // '127.0.0.1:3000', Listen => 16, ReuseAddr => 1)
    or die "listen: $@\n";
$| = 1;
while (my $peer = $server->accept) {
    local $/ = "\r\n";
    my $request = <$peer>;
    my %headers;
    while (defined(my $line = <$peer>)) {
        last if $line eq "\r\n";
        $headers{lc $1} = $2 if $line =~ /\A([^:]+):[ \t]*(.*?)[ \t]*\r\n\z/;
    }
    my $length = $headers{'content-length'} // 0;
    my ($body, $genuine) = ('', 0);
    if ($length =~ /\A[0-9]+\z/ and $length <= $body_max) {
        read $peer, $body, $length;
        $genuine = verified($secret, \%headers, $body);
    }
    print "verified $headers{'webhook-id'}\n" if $genuine;
    printf $peer "HTTP/1.1 %s\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", $genuine ? '204 No Content' : '401 Unauthorized';
    close $peer;
}
