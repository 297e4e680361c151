import java.util.Collections;
import org.apache.kafka.clients.admin.AdminClient;
import org.apache.kafka.clients.admin.Config;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.common.config.ConfigResource;

/** ADDRESS TOPIC: creates, describes, changes and deletes it, and prints what it saw. */
public class Administration {
    public static void main(String[] args) throws Exception {
        String topic = args[1];
        var one = Collections.singletonList(topic);
        ConfigResource resource = new ConfigResource(ConfigResource.Type.TOPIC, topic);
        try (AdminClient admin = AdminClient.create(Client.config(args[0]))) {
            NewTopic made = new NewTopic(topic, 2, (short) 1)
                .configs(Collections.singletonMap("retention.ms", "123456"));
            admin.createTopics(Collections.singletonList(made)).all().get();
            Client.out.println("listed " + admin.listTopics().names().get().contains(topic));
            Client.out.println("partitions "
                + admin.describeTopics(one).all().get().get(topic).partitions().size());
            show(admin, resource);
            Config changed = new Config(
                Collections.singletonList(new ConfigEntry("retention.ms", "234567")));
            admin.alterConfigs(Collections.singletonMap(resource, changed)).all().get();
            show(admin, resource);
            Client.out.println("nodes " + admin.describeCluster().nodes().get().size());
            admin.deleteTopics(one).all().get();
            Client.out.println("listed " + admin.listTopics().names().get().contains(topic));
        }
    }

    static void show(AdminClient admin, ConfigResource resource) throws Exception {
        Client.out.println("retention " + admin.describeConfigs(Collections.singletonList(resource))
            .all().get().get(resource).get("retention.ms").value());
    }
}
