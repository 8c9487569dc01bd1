/**
 * Announcements inside this process. Whoever commits publishes afterwards; every subscriber hears at once. They are
 * hints: the tables say what is true, and a lost announcement costs time, never a wake-up.
 */
import type { Announcement } from "../Ledger.js"

/** The publish and subscribe ends of one ledger's announcements. */
export class Hub {
  private readonly subscribers = new Set<(announcement: Announcement) => void>()

  /** Calls every subscriber. Subscribers must not throw and must not block. */
  publish(announcement: Announcement): void {
    for (const subscriber of this.subscribers) subscriber(announcement)
  }

  /** Calls `callback` for every announcement from now on; returns how to stop. */
  subscribe(callback: (announcement: Announcement) => void): () => void {
    // A wrapper of its own, so that the same callback may subscribe twice.
    const subscriber = (announcement: Announcement) => callback(announcement)
    this.subscribers.add(subscriber)
    return () => {
      this.subscribers.delete(subscriber)
    }
  }
}

/** The text that crosses processes. The sender's name lets it pass over what it has announced to itself. */
export const encodeAnnouncement = (sender: string, announcement: Announcement): string =>
  `${sender}\n${announcement._tag}\n${"branch" in announcement ? announcement.branch : ""}`
